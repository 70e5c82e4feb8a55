"""The call for an export: everything that was said so far, as one ZIP file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from veriglot.annotate.exporting import Format, export_zip
from veriglot.annotate.store.columns import now
from veriglot.web.studio.sessions import Leading  # noqa: TC001
from veriglot.web.studio.wire import described

__all__ = ["router"]

router = APIRouter()


def _described() -> dict[str, Any]:
    said = described(dict[str, str], refusals=(401, 422))
    file = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
    said["responses"][200] = {"description": "A ZIP file", "content": file}
    return said


@router.get("/api/lead/export", response_class=FileResponse, **_described())
def export(request: Request, caller: Leading, format: Format = "native", names: bool = False) -> Response:  # noqa: A002
    """Export now, while people work on; `names` are those that people chose, in place of their public ids."""
    request.app.state.rates.count("heavy", caller.token)
    folder = tempfile.TemporaryDirectory(prefix="veriglot-export-")
    try:
        path = Path(folder.name) / "export.zip"
        export_zip(caller.studio.store, caller.studio.project, path, format, names=names)
        with caller.studio.store.writing() as tx:
            payload = {"format": format, "names": names}
            tx.record("exported", caller.studio.id, person_id=caller.person.id, payload=payload)
    except BaseException:
        folder.cleanup()
        raise
    name = f"{caller.studio.slug}-{format}-{now():%Y%m%d-%H%M}.zip"
    return FileResponse(path, media_type="application/zip", filename=name, background=BackgroundTask(folder.cleanup))
