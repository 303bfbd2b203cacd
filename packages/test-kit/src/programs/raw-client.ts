/** Python text that gives a program `call(name, **arguments)` and `Connection`, by the plain protocol. */
export const RAW_CLIENT = `
import json, os, socket, threading, time
PATH = os.environ["SANDBOX_TOOL_SOCKET"]
class Connection:
    def __init__(self):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.s.connect(PATH)
    def send(self, data):
        self.s.sendall(data)
        return self
    def read(self):
        out = b""
        while True:
            chunk = self.s.recv(1 << 16)
            if not chunk:
                break
            out += chunk
        head, _, body = out.partition(b"\\r\\n\\r\\n")
        return int(head.split(b" ")[1]) if head else 0, head.decode(), body.decode()
def request(body, path="/tool-call", method="POST", headers=""):
    data = body if isinstance(body, bytes) else body.encode()
    return f"{method} {path} HTTP/1.1\\r\\nHost: x\\r\\n{headers}Content-Length: {len(data)}\\r\\n\\r\\n".encode() + data
def issue(name, **arguments):
    return Connection().send(request(json.dumps({"tool_name": name, "input": arguments})))
def call(name, **arguments):
    status, _, body = issue(name, **arguments).read()
    if status == 200:
        return json.loads(body)
    raise RuntimeError(f"{status} {body}")
`;
