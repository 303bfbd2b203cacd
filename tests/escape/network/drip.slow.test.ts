/** Requests to the tool socket that never end: each is cut off after its time, and the slot is free again. */

import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { drive, type Input } from "@svc/test-kit/system/programmatic";
import { expect, test } from "vitest";
import { besiege } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

test("a request of one byte a second is cut off, from fifty connections at once", async () => {
  const code = `${RAW_CLIENT}
ends = []
def drip(data):
    c = Connection(); began = time.monotonic()
    try:
        for byte in data: c.send(bytes([byte])); time.sleep(1)
    except OSError: ends.append(time.monotonic() - began)
head = b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1000\\r\\n\\r\\n"
threads = [threading.Thread(target=drip, args=(head if n % 2 else b"P" * 60,)) for n in range(50)]
for t in threads: t.start()
for t in threads: t.join()
print(len(ends), max(ends) < 40)
print(call("add", a=1, b=1))`;
  const { answer } = await besiege(() =>
    drive(attacker, { code, timeout: 90_000 }, { add: ({ a, b }: Input) => a + b }),
  );
  expect(answer).toMatchObject({ status: "completed", stdout: "50 True\n2\n" });
});
