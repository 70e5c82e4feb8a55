"""Run by Label Studio's own Python: CONFIG and TASKS go through its API into a new project, and its export to BACK."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from label_studio.server import _apply_database_migrations, _setup_env

config, tasks, back = map(Path, sys.argv[1:])
_setup_env()
_apply_database_migrations()

from organizations.models import Organization  # noqa: E402  # Django has to know its settings first
from rest_framework.test import APIClient  # noqa: E402
from users.models import User  # noqa: E402

user = User.objects.create_user(email="lead@example.org", username="lead", password="only for this test")
organization = Organization.create_organization(created_by=user, title="Test")
user.active_organization = organization
user.save()
client = APIClient()
client.force_authenticate(user)


def call(method: str, path: str, data: object = None) -> object:
    answer = getattr(client, method)(path, data, format="json")
    content = answer.content if not answer.streaming else b"".join(answer.streaming_content)
    if answer.status_code not in {200, 201}:
        raise SystemExit(f"{path}: {answer.status_code} {content.decode()}")
    return json.loads(content)


project = call("post", "/api/projects/", {"title": "Studio", "label_config": config.read_text("utf-8")})
path = f"/api/projects/{project['id']}"
imported = call("post", f"{path}/import", json.loads(tasks.read_text("utf-8")))
exported = call("get", f"{path}/export?exportType=JSON&download_all_tasks=true")
back.write_text(json.dumps({"imported": imported, "exported": exported}), "utf-8")
