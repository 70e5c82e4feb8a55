"""Answers of OpenAI's API, checked sentence by sentence while they stream.

The server here is a small one on this machine that speaks the API, so the example needs no key.
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest

from veriglot.errors import UsageError
from veriglot.integrations import OpenAIChecker

PIECES = [
    "The bridge",
    " was opened in ",
    "1907",
    ". It",
    " is 3.5 kilo",
    "metres long. 它",
    "于1879年建成。",
    " It is old",
]
sent = []
checked = threading.Event()


class Server(BaseHTTPRequestHandler):
    """Answers every question with PIECES; the last one waits until the first sentence was checked."""

    def do_POST(self):
        """Stream."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert request["stream"] is True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        sent.clear()
        for piece in PIECES:
            if piece == PIECES[-1]:
                checked.wait(30)
            self.put({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
            sent.append(piece)
        self.put({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.put({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
        self.wfile.write(b"data: [DONE]\n\n")

    def put(self, chunk):
        """One event."""
        whole = {"id": "a", "object": "chat.completion.chunk", "created": 0, "model": "m", **chunk}
        self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        """Nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key": "none"}
request = {"model": "m", "messages": [{"role": "user", "content": "When was the bridge opened?"}]}
passages = ["The bridge was opened in 1879. It is 3.5 kilometres long.", "它于1879年建成。 It is old."]

checker = OpenAIChecker(openai.OpenAI(**address))
checker.stream(passages, **request)  # nothing is asked until it is read
assert not sent
seen = []
for sentence in checker.stream(passages, **request):
    seen.append((sentence.text, str(sentence.verdict), len(sent)))
    checked.set()
    print(sentence.verdict, sentence.text, [span.text for span in sentence.spans])
texts = ["The bridge was opened in 1907.", "It is 3.5 kilometres long.", "它于1879年建成。", "It is old"]
assert [text for text, _, _ in seen] == texts
assert seen[0][1] == "unsupported"
assert seen[1][1] == "supported"
assert seen[0][2] < len(PIECES), "the first sentence comes while the answer streams"


async def stream():
    """The same, with the asynchronous client."""
    async with openai.AsyncOpenAI(**address) as client:
        return [found async for found in OpenAIChecker(client, language="en").astream(passages, **request)]


found = asyncio.run(stream())
assert [sentence.text for sentence in found] == texts
assert [span.text for span in found[0].spans] == ["1907"]
answer = "".join(PIECES)
assert all(answer[sentence.start : sentence.end] == sentence.text for sentence in found)
assert all(answer[span.start : span.end] == span.text for sentence in found for span in sentence.spans)

assert {str(sentence.verdict) for sentence in checker.stream([], **request)} == {"not_checked"}
with pytest.raises(UsageError, match="Only one answer"):
    list(checker.stream(passages, n=2, **request))
server.shutdown()
server.server_close()
