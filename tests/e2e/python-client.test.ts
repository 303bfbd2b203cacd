/** The Python client against whole systems: every method, with a key and without one, and through proxies of both kinds. */
import { dirname } from "node:path";
import { run } from "@svc/cli/system/run";
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { debianProgram } from "./support/debian-programs.ts";
import { startTunnels, type Tunnels } from "./support/forward-proxy.ts";
import { type SecureProxy, startSecureCaddy } from "./support/proxies.ts";
import { PYTHON, PYTHON_CLIENT, runLive } from "./support/python-client.ts";
import { useProxies } from "./support/use-proxies.ts";
import { useSystem } from "./support/use-system.ts";

const { url, instance } = sharedSystem();
const { starts } = useProxies(new Api(url));
const MODULES = ["test_sync", "test_asyncio", "test_jobs"];

test.each(MODULES)("%s", (module) => runLive(module, { url }));

describe.each(Object.entries(starts))("through %s", (_name, start) => {
  test.each(["test_sync.Streams", "test_sync.Tools", "test_asyncio", "test_jobs"])("%s", async (module) => {
    const proxy = await start(instance.ports.api);
    try {
      await runLive(module, { url: proxy.url });
    } finally {
      await proxy.stop();
    }
  });
});

describe("by TLS", () => {
  let site: SecureProxy;
  let tunnels: Tunnels;
  beforeAll(async () => {
    site = await startSecureCaddy(instance.ports.api, "localhost");
    tunnels = await startTunnels();
  });
  afterAll(async () => {
    await tunnels?.stop();
    await site?.stop();
  });

  test("the authority of the environment is believed", async () => {
    await runLive("test_asyncio", { url: site.url, authority: site.authority });
  });

  test("a certificate of an unknown authority is not", async () => {
    const failure = await runLive("test_asyncio.Everything.test_runs_side_by_side", { url: site.url }).catch(
      String,
    );
    expect(failure).toContain("CERTIFICATE_VERIFY_FAILED");
  });

  test("a forward proxy is asked for a tunnel", async () => {
    const { proxy } = tunnels;
    await runLive("test_asyncio", { url: site.url, authority: site.authority, proxy });
    expect(tunnels.asked).toContain(new URL(site.url).host);
  });
});

describe("with API keys and sessions", () => {
  const keys = apiKeysFile();
  const key = newApiKey();
  keys.put([apiKeyRecord(key)]);
  let address: string;
  useSystem({ ...OPEN_LIMITS, SVC_PERSIST_SESSIONS: "true", SVC_API_KEYS_FILE: keys.path }, ({ system }) => {
    address = system.url;
  });
  afterAll(() => keys.remove());

  test.each(["test_sessions", "test_sync.Files", "test_sync.Tools", "test_jobs"])("%s", (module) =>
    runLive(module, { url: address, token: key }),
  );
});

test("every type is told: mypy --strict finds nothing", async () => {
  const modules = ["python3-mypy", "python3-mypy-extensions", "python3-typing-extensions"];
  const folder = "usr/lib/python3/dist-packages";
  const files = ["mypy/__main__.py", "mypy_extensions.py", "typing_extensions.py"];
  const paths = await Promise.all(modules.map((name, at) => debianProgram(name, `${folder}/${files[at]}`)));
  const [mypy = "", ...others] = paths.map((path) => dirname(path));
  const env = { PATH: process.env.PATH, PYTHONPATH: [dirname(mypy), ...others].join(":") };
  const command = [PYTHON, "-B", "-m", "mypy", "--cache-dir", "/dev/null", "svc_client"];
  const { code, tail } = await run(command, { cwd: PYTHON_CLIENT, env });
  expect([code, tail]).toEqual([
    0,
    [expect.stringMatching(/^Success: no issues found in \d+ source files$/)],
  ]);
});
