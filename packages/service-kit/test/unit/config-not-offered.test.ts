import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, test } from "vitest";
import { ineffectiveVariables, loadConfig } from "../../src/config/load.ts";

const env = { SVC_INTERNAL_SERVICE_TOKEN: newSecret() };

test.each([["KVM_ENABLED", "true"]])(
  "%s=%s stops the process, because this version does not offer it",
  (name, value) => {
    expect(() => loadConfig("api", { ...env, [name]: value })).toThrow(`${name} asks for something`);
  },
);

test("their defaults do not", () => {
  expect(() => loadConfig("api", env)).not.toThrow();
});

test("a variable of a feature that this version lacks is named as one without effect", () => {
  expect(
    ineffectiveVariables({ ...env, SANDBOX_WORKSPACE_ROOT: "/x", KVM_ENABLED: "", SANDBOX_WARM_POOL: "1" }),
  ).toEqual(["SANDBOX_WORKSPACE_ROOT"]);
});
