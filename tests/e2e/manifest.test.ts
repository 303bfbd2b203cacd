/** Reaching the runner's port is not enough to run programs: only what the worker signed is let in. */

import { Api } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { expect, test } from "vitest";

const system = sharedSystem();
const api = new Api(system.url);

test("requests through the API run, with inputs and outputs", async () => {
  const input = await api.stage("input.txt", "the input");
  const answer = await api.exec({ lang: "bash", code: "cat input.txt; echo > out.txt", files: [input] });
  expect(answer).toMatchObject({ stdout: "the input", code: 0 });
  expect(answer.files.map(({ name }) => name).sort()).toEqual(["input.txt", "out.txt"]);
});

test("an unsigned request to the runner is refused", async () => {
  for (const path of ["/execute", "/api/v2/execute"]) {
    const response = await fetch(`http://127.0.0.1:${system.instance.ports.runner}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ language: "bash", version: "*", files: [{ name: "main.sh", content: "id" }] }),
    });
    expect([response.status, await response.json()]).toMatchObject([401, { error: "manifest_missing" }]);
  }
});
