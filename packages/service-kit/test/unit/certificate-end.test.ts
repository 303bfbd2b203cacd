import { X509Certificate } from "node:crypto";
import { createAuthority } from "@svc/test-kit/credentials/certificates";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchCertificateEnd } from "../../src/http/certificate-end.ts";
import { Registry, type TlsIdentity } from "../../src/index.ts";

const DAY_MS = 24 * 3_600_000;
const BEGIN = new Date("2026-01-01T00:00:00Z");
const after = (days: number) => new Date(BEGIN.getTime() + days * DAY_MS);

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "setInterval"] }));
afterEach(() => void vi.useRealTimers());

/** A component with a certificate for 90 days that is looked at on this day. */
async function watched(day: number) {
  const issue = async (begin: number) => {
    const { issue } = await createAuthority();
    const { cert } = await issue(["worker"], { notBefore: after(begin), notAfter: after(begin + 90) });
    return new X509Certificate(cert);
  };
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const followers: Parameters<TlsIdentity["follow"]>[0][] = [];
  const identity = {
    certificate: await issue(0),
    follow: (follower: (typeof followers)[number]) => void followers.push(follower),
  };
  const registry = new Registry();
  vi.setSystemTime(after(day));
  watchCertificateEnd(identity, registry, log);
  const renew = async (begin: number) => {
    identity.certificate = await issue(begin);
    for (const follower of followers) follower({} as never);
  };
  return { lines, registry, renew };
}

it.each([
  [59, []],
  [61, ["the certificate expires soon"]],
  [91, ["the certificate has expired"]],
])("on day %i of 90 the log says %j", async (day, said) => {
  expect((await watched(day)).lines).toEqual(said);
});

it("says so once a day, until it is renewed", async () => {
  const { lines, renew } = await watched(88);
  vi.advanceTimersByTime(3 * DAY_MS);
  const soon = "the certificate expires soon";
  const expired = "the certificate has expired";
  expect(lines).toEqual([soon, soon, expired, expired]);
  await renew(90);
  vi.advanceTimersByTime(3 * DAY_MS);
  expect(lines).toHaveLength(4);
});

it("metrics tell both ends of its life", async () => {
  const text = await (await watched(1)).registry.metrics();
  const seconds = (day: number) => after(day).getTime() / 1000;
  expect(text).toContain(`svc_tls_certificate_begin_timestamp_seconds ${seconds(0)}`);
  expect(text).toContain(`svc_tls_certificate_expiry_timestamp_seconds ${seconds(90)}`);
});
