/** A certificate authority of a test, and what it issues. */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const LIFE_MS = 24 * 3_600_000;

export interface Issued {
  cert: string;
  key: string;
}

export interface Life {
  notBefore: Date;
  notAfter: Date;
}

export interface Authority {
  /** PEM. */
  ca: string;
  /** `names`: DNS names, or addresses of this machine. */
  issue: (names: readonly string[], life?: Life) => Promise<Issued>;
}

export async function createAuthority(): Promise<Authority> {
  const keys = await newKeys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...life(),
    name: "CN=authority of a test",
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  });
  const issue = async (names: readonly string[], within: Life = life()): Promise<Issued> => {
    const own = await newKeys();
    const cert = await x509.X509CertificateGenerator.create({
      ...within,
      subject: "CN=component of a test",
      issuer: root.subject,
      signingAlgorithm: ALGORITHM,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      extensions: [
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: /^[\d.]+$/.test(value) ? "ip" : "dns", value })),
        ),
      ],
    });
    const key = await webcrypto.subtle.exportKey("pkcs8", own.privateKey);
    return { cert: cert.toString("pem"), key: x509.PemConverter.encode(key, "PRIVATE KEY") };
  };
  return { ca: root.toString("pem"), issue };
}

const newKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
const life = (): Life => ({
  notBefore: new Date(Date.now() - 60_000),
  notAfter: new Date(Date.now() + LIFE_MS),
});

/** Writes them as a component's settings name them. */
export function tlsFiles(folder: string, ca: string, { cert, key }: Issued): Record<string, string> {
  mkdirSync(folder, { recursive: true });
  const files = {
    SVC_TLS_CERT_FILE: join(folder, "cert.pem"),
    SVC_TLS_KEY_FILE: join(folder, "key.pem"),
    SVC_TLS_CA_FILE: join(folder, "ca.pem"),
  };
  writeFileSync(files.SVC_TLS_CERT_FILE, cert);
  writeFileSync(files.SVC_TLS_KEY_FILE, key);
  writeFileSync(files.SVC_TLS_CA_FILE, ca);
  return files;
}
