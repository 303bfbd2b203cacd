/**
 * Mutual TLS between components, with certificates of one authority (SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE, SVC_TLS_CA_FILE).
 * A certificate names the component of its holder: the first label of one of its DNS names, such as `worker` or
 * `worker.svc.internal`. A component serves only the components that need to call it. Replaced files, such as after a renewal, are
 * read again.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions, type TLSSocket } from "node:tls";
import { CALLS, LISTENS, placeOf } from "../config/calls.ts";
import { ConfigError } from "../config/load.ts";
import type { Component } from "../config/types.ts";
import type { Config } from "../config/variables.ts";
import type { Log } from "../log.ts";

/** The components that may call this one. Health, readiness and metrics are open to everybody. */
export function callersOf(component: Component): readonly string[] {
  return CALLS.filter(({ from, to }) => to === placeOf(component) && from in LISTENS).map(({ from }) => from);
}

const LOOK_AGAIN_MS = 30_000;
const MIN_VERSION = "TLSv1.3";
const FILES = ["SVC_TLS_CERT_FILE", "SVC_TLS_KEY_FILE", "SVC_TLS_CA_FILE"] as const;

type Material = Required<Pick<SecureContextOptions, "cert" | "key" | "ca">> & SecureContextOptions;

/** A component's own certificate and key, and the authority by which it verifies others. */
export class TlsIdentity {
  readonly #read: () => Material;
  readonly #log: Log;
  #material: Material;
  readonly #followers = new Set<(material: Material) => void>();
  #refused = "";

  constructor(read: () => Material, log: Log, lookAgainMs = LOOK_AGAIN_MS) {
    this.#read = read;
    this.#log = log;
    this.#material = read();
    setInterval(() => this.lookAgain(), lookAgainMs).unref();
  }

  get material(): Material {
    return this.#material;
  }

  get certificate(): X509Certificate {
    return certificateOf(this.#material);
  }

  follow(follower: (material: Material) => void): void {
    this.#followers.add(follower);
  }

  /** Loads the current files. Files that do not fit together, for example in the middle of a renewal, change nothing. */
  lookAgain(): void {
    try {
      const found = this.#read();
      this.#refused = "";
      if (FILE_PARTS.every((part) => String(found[part]) === String(this.#material[part]))) return;
      this.#material = found;
      for (const follower of this.#followers) follower(found);
      this.#log.info(
        { certificate_until: this.certificate.validToDate.toISOString() },
        "took a new certificate",
      );
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#refused) this.#log.warn({ err: message }, "the new certificate is not usable");
      this.#refused = message;
    }
  }
}

const FILE_PARTS = ["cert", "key", "ca"] as const;
const certificateOf = ({ cert }: Material) => new X509Certificate(cert as Buffer);

/** Undefined when the component speaks plain HTTP. Throws ConfigError for unreadable files, or a key that does not fit the certificate. */
export function tlsIdentity(component: Component, config: Config, log: Log): TlsIdentity | undefined {
  if (config.SVC_TLS_CERT_FILE === "") return undefined;
  try {
    return new TlsIdentity(() => readMaterial(component, config), log);
  } catch (error) {
    throw new ConfigError([(error as Error).message]);
  }
}

function readMaterial(component: Component, config: Config): Material {
  const read = <T>(name: (typeof FILES)[number], what: string, parse: (pem: Buffer) => T) => {
    const pem = readNamed(name, config[name]);
    try {
      return { pem, parsed: parse(pem) };
    } catch {
      throw new Error(`${name} ${config[name]} is no ${what} in PEM`);
    }
  };
  const own = read("SVC_TLS_CERT_FILE", "certificate", (pem) => new X509Certificate(pem));
  const key = read("SVC_TLS_KEY_FILE", "private key without a passphrase", createPrivateKey);
  const ca = read("SVC_TLS_CA_FILE", "certificate", (pem) => new X509Certificate(pem));
  if (!own.parsed.checkPrivateKey(key.parsed)) {
    throw new Error("SVC_TLS_KEY_FILE is not the key of the certificate in SVC_TLS_CERT_FILE");
  }
  const place = placeOf(component);
  const { subjectAltName } = own.parsed;
  if (!componentsOf(subjectAltName).has(place)) {
    throw new Error(
      `SVC_TLS_CERT_FILE ${config.SVC_TLS_CERT_FILE}: the certificate is not the ${place}'s: none of its DNS names is ${place} or begins with ${place}. (it has ${subjectAltName ?? "none"})`,
    );
  }
  const material = { cert: own.pem, key: key.pem, ca: ca.pem, minVersion: MIN_VERSION } as const;
  createSecureContext(material);
  return material;
}

function readNamed(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(`${name} ${path} ${code === "ENOENT" ? "does not exist" : `cannot be read: ${message}`}`);
  }
}

const NAME = /^DNS:([a-z][a-z-]*)(?:\.[a-z0-9.-]+)?$/;

/** First labels of the DNS names in a subjectAltName as Node formats it. None when Node had to quote a name: ours need no quotes. */
export function componentsOf(subjectAltName: string | undefined): ReadonlySet<string> {
  if (subjectAltName === undefined || subjectAltName.includes('"')) return new Set();
  return new Set(subjectAltName.split(", ").flatMap((name) => NAME.exec(name)?.[1] ?? []));
}

/** `reason`: why the certificate was refused; undefined when the other side showed none. */
export type Shown = { isServed: true } | { isServed: false; reason: string | undefined };

/** Whether the other side of a connection showed the certificate of a component in `callers`. */
export function shownBy(socket: TLSSocket, callers: readonly string[]): Shown {
  const { subjectaltname, fingerprint256 } = socket.getPeerCertificate();
  if (fingerprint256 === undefined) return { isServed: false, reason: undefined };
  if (!socket.authorized) return { isServed: false, reason: String(socket.authorizationError) };
  const names = componentsOf(subjectaltname);
  if (callers.some((caller) => names.has(caller))) return { isServed: true };
  return {
    isServed: false,
    reason: `it is of ${[...names].join(", ") || "no component"}, which may not call`,
  };
}
