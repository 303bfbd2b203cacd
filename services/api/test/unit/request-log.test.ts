import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, it } from "vitest";
import { principalTags } from "../../src/request-log.ts";

const secrets = { SVC_CONTINUATION_SECRET: newSecret(), SVC_INTERNAL_SERVICE_TOKEN: newSecret() };
const one = { tenantId: "acme", userId: "u1" };

it("the tag of a principal is the same after a restart, and another with another secret", () => {
  const tag = principalTags(secrets)(one);
  expect(tag).toMatch(/^[\w-]{16}$/);
  expect(principalTags(secrets)({ ...one })).toBe(tag);
  expect(principalTags({ ...secrets, SVC_INTERNAL_SERVICE_TOKEN: newSecret() })(one)).toBe(tag);
  expect(principalTags({ ...secrets, SVC_CONTINUATION_SECRET: newSecret() })(one)).not.toBe(tag);
  expect(principalTags({ ...secrets, SVC_CONTINUATION_SECRET: "" })(one)).not.toBe(tag);
});

it("principals that look alike when they are joined have tags of their own", () => {
  const tag = principalTags(secrets);
  const alike = [
    one,
    { tenantId: "acmeu", userId: "1" },
    { tenantId: "acme", userId: "u2" },
    { tenantId: "", userId: "acmeu1" },
  ];
  expect(new Set(alike.map(tag)).size).toBe(alike.length);
});
