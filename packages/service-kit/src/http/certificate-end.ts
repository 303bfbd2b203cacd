/**
 * Reports when a component's certificate expires: always in metrics, and in the log when little of its lifetime is left.
 * Checks at the start, once a day, and when a new certificate is loaded. The component goes on with an expired certificate, but all
 * other components refuse it.
 */
import type { X509Certificate } from "node:crypto";
import type { Registry } from "prom-client";
import type { Log } from "../log.ts";
import { gauge } from "../metrics/made.ts";
import type { TlsIdentity } from "./tls.ts";

const DAY_MS = 24 * 3_600_000;
/** Warns in the last third of the lifetime, because a renewal is due at two thirds at the latest. */
const SHARE_LEFT = 1 / 3;

export function watchCertificateEnd(
  identity: Pick<TlsIdentity, "certificate" | "follow">,
  registry: Registry,
  log: Log,
): void {
  gauge(registry, "svc_tls_certificate_begin_timestamp_seconds", (begin) =>
    begin.set(identity.certificate.validFromDate.getTime() / 1000),
  );
  gauge(registry, "svc_tls_certificate_expiry_timestamp_seconds", (expiry) =>
    expiry.set(identity.certificate.validToDate.getTime() / 1000),
  );
  const look = () => warnOf(identity.certificate, log);
  look();
  identity.follow(look);
  setInterval(look, DAY_MS).unref();
}

function warnOf({ validFromDate, validToDate }: X509Certificate, log: Log): void {
  const leftMs = validToDate.getTime() - Date.now();
  if (leftMs >= (validToDate.getTime() - validFromDate.getTime()) * SHARE_LEFT) return;
  const line = { certificate_until: validToDate.toISOString() };
  if (leftMs <= 0) log.warn(line, "the certificate has expired");
  else log.warn(line, "the certificate expires soon");
}
