/** An upload whose files were stored, but whose commit was not answered: it is answered in the end, or nothing of it is left. */
import { type ForgetfulProxy, startForgetfulProxy } from "@svc/test-kit/system/forgetful-proxy";
import { describe, expect, onTestFinished, test } from "vitest";
import { startFileApi } from "../../support/file-api.ts";
import { errorOf, file, fileClient, type Uploaded } from "../../support/file-client.ts";

/** An API that loses the first answers to its commits. */
async function start(answersLost: number) {
  let proxy: ForgetfulProxy | undefined;
  const api = await startFileApi({}, async (fileServer) => {
    let left = answersLost;
    proxy = await startForgetfulProxy(fileServer, (_method, path) => path.endsWith("/commit") && left-- > 0);
    return proxy.endpoint;
  });
  onTestFinished(async () => {
    await api.stop();
    await proxy?.stop();
  });
  return { api, lost: () => proxy?.lost(), ...fileClient(() => api) };
}

describe.each(["upload", "upload/batch"])("POST /v1/%s", (route) => {
  test("answers with its files when the answers to its commit were lost", async () => {
    const { api, lost, post, call } = await start(2);
    const answer = await post(route, [file("a", "one"), file("b", "two")]);
    expect(answer.status).toBe(200);
    expect(lost()).toBe(2);
    const { storage_session_id, files } = (await answer.json()) as Uploaded;
    const texts = files.map(async ({ id }) => (await call(`download/${storage_session_id}/${id}`)).text());
    expect(await Promise.all(texts)).toEqual(["one", "two"]);
    expect(await api.fileServer.storedFiles()).toHaveLength(2);
  });

  test("leaves nothing when no answer to its commit comes", async () => {
    const { api, lost, post } = await start(Number.POSITIVE_INFINITY);
    const answer = await post(route, [file("a", "one"), file("b", "two")]);
    expect(await errorOf(answer)).toEqual([503, "storage_unavailable"]);
    expect(lost()).toBeGreaterThan(1);
    expect(await api.fileServer.storedFiles()).toEqual([]);
  });
});
