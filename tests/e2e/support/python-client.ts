/** Runs tests and programs of the Python client in clients/python on the system's Python. */
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "@svc/cli/instance";
import { processesWith } from "@svc/test-kit/system/processes";
import { expect } from "vitest";

export const PYTHON = "/usr/bin/python3";
export const PYTHON_CLIENT = join(ROOT, "clients/python");

/** How the tests reach the service. */
export interface Reached {
  url: string;
  token?: string;
  /** http://host:port; none when it is left out. */
  proxy?: string;
  /** File of the authority that has signed the service's certificate. */
  authority?: string;
}

/** Runs tests/live/<module>.py, or one class or test of it; each of its tests must run and pass. */
export async function runLive(name: string, { url, token, proxy = "", authority }: Reached): Promise<void> {
  const processes = await serveProcesses();
  const env = {
    ...process.env,
    TEST_URL: url,
    TEST_PROXY: proxy,
    TEST_PROCESSES: processes.url,
    ...(token === undefined ? {} : { TEST_TOKEN: token }),
    ...(authority === undefined ? {} : { SSL_CERT_FILE: authority }),
  };
  const args = ["-B", "-X", "dev", "-W", "error", "-m", "unittest", `tests.live.${name}`];
  try {
    const { stderr } = await promisify(execFile)(PYTHON, args, { cwd: PYTHON_CLIENT, env });
    expect(stderr).toMatch(/^Ran \d+ tests? in .*\n\nOK\n$/m);
    expect(stderr).not.toMatch(/^Ran 0 |Exception ignored|Warning/m);
  } finally {
    await processes.close();
  }
}

/** What clients/python/tests/live/target.py asks for programs on this machine. */
async function serveProcesses(): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer(({ url = "" }, response) => {
    response.end(JSON.stringify(processesWith(url.slice(url.indexOf("?") + 1))));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
