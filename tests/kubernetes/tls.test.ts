/** Certificates of components in the overlay with TLS: each pod has its own and no other, and others know it by the names in it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { ROOT } from "@svc/cli/instance";
import { createLog } from "@svc/service-kit";
import { CALLS, LISTENS } from "@svc/service-kit/config/calls";
import { loadConfig } from "@svc/service-kit/config/load";
import type { Component } from "@svc/service-kit/config/types";
import type { Config } from "@svc/service-kit/config/variables";
import { tlsIdentity } from "@svc/service-kit/http/tls";
import { createAuthority, tlsFiles } from "@svc/test-kit/credentials/certificates";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { livingEnvironment } from "./support/living.ts";
import { containersOf, type KubeObject, mainContainer, objectsOf, ownWorkloads } from "./support/objects.ts";
import { unknownFields, wrongValues } from "./support/schemas.ts";

const COMPONENTS = Object.keys(LISTENS) as Component[];
/** As cert-manager names them in a Secret, and as the components' settings. */
const FILES = { SVC_TLS_CERT_FILE: "tls.crt", SVC_TLS_KEY_FILE: "tls.key", SVC_TLS_CA_FILE: "ca.crt" };

interface Certificate extends KubeObject {
  spec: { secretName: string; dnsNames: string[]; issuerRef: { kind: string; name: string } };
}

const certificates = () =>
  objectsOf("large-tls").filter(({ kind }) => kind === "Certificate") as Certificate[];

/** The names in the certificate of a component. */
function namesOf(component: string): string[] {
  const found = certificates().find(({ metadata }) => metadata.name === component);
  if (found === undefined) throw new Error(`${component} has no certificate`);
  return found.spec.dnsNames;
}

const isKnownAs = (component: string, host: string) => {
  const subjectaltname = namesOf(component)
    .map((name) => `DNS:${name}`)
    .join(", ");
  return checkServerIdentity(host, { subject: {}, subjectaltname } as PeerCertificate) === undefined;
};

const environments = () => {
  const objects = objectsOf("large-tls");
  return new Map(
    ownWorkloads(objects).map((workload) => [
      workload.metadata.name as Component,
      livingEnvironment(workload, objects),
    ]),
  );
};

describe("each component", () => {
  it("mounts the Secret of its own certificate, no other one, and beside the runner jaild none", () => {
    for (const workload of ownWorkloads(objectsOf("large-tls"))) {
      const { name, namespace } = workload.metadata;
      const { volumes = [], initContainers = [] } = workload.spec.template.spec;
      const secrets = volumes.filter((volume) => "secret" in volume);
      expect(secrets, name).toHaveLength(1);
      expect(secrets[0]).toMatchObject({ name: "tls", secret: { secretName: `svc-tls-${name}` } });
      const certificate = certificates().find(({ metadata }) => metadata.name === name);
      expect(certificate?.spec.secretName).toBe(`svc-tls-${name}`);
      expect(certificate?.metadata.namespace).toBe(namespace);
      const mounts = containersOf(workload).map(({ volumeMounts = [] }) =>
        volumeMounts.filter((mount) => mount.name === "tls"),
      );
      const folder = "/etc/svc/tls";
      const own = [{ name: "tls", mountPath: folder, readOnly: true }];
      expect(mounts, name).toEqual([own, ...initContainers.map(() => [])]);
      const { env = [] } = mainContainer(workload);
      for (const [variable, file] of Object.entries(FILES))
        expect(env, name).toContainEqual({ name: variable, value: `${folder}/${file}` });
    }
    expect(
      certificates()
        .map(({ metadata }) => metadata.name)
        .sort(),
    ).toEqual(COMPONENTS.toSorted());
  });

  it("is called by a name in its certificate, and by none in another's", () => {
    let tried = 0;
    for (const [from, environment] of environments())
      for (const { to, by } of CALLS.filter((call) => call.from === from && call.to in LISTENS)) {
        for (const text of (environment[by ?? ""] ?? "").split(",")) {
          const { hostname } = new URL(text.includes("://") ? text : `https://${text}`);
          const known = COMPONENTS.filter((component) => isKnownAs(component, hostname));
          expect(known, `${from} ${by}=${text}`).toEqual([to]);
        }
        tried += 1;
      }
    expect(tried).toBeGreaterThan(6);
  });

  it("of runners each has its own name in the one certificate", () => {
    const worker = environments().get("worker");
    const urls = worker?.SANDBOX_ENDPOINT?.split(",") ?? [];
    expect(urls).toHaveLength(8);
    for (const url of urls) expect(isKnownAs("runner", new URL(url).hostname), url).toBe(true);
  });
});

describe("a certificate with the names of the manifests", () => {
  let folder: string;
  const own = new Map<Component, Record<string, string>>();
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-test-certificates-"));
    const { ca, issue } = await createAuthority();
    for (const name of COMPONENTS)
      own.set(name, tlsFiles(join(folder, name), ca, await issue(namesOf(name))));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const identityOf = (component: Component, files: Component) => {
    const config: Config = loadConfig(component, { ...environments().get(component), ...own.get(files) });
    return () => tlsIdentity(component, config, createLog(component, config));
  };

  it("is the identity of its component", () => {
    for (const name of COMPONENTS) expect(identityOf(name, name)()?.material.cert, name).toBeDefined();
  });

  it("is refused as that of each other component", () => {
    for (const name of COMPONENTS)
      for (const other of COMPONENTS.filter((one) => one !== name))
        expect(identityOf(name, other), `${other}'s for ${name}`).toThrow(
          `the certificate is not the ${name}'s`,
        );
  });
});

it("the issuer of docs/kubernetes.md is one that cert-manager takes, of the name that the certificates ask for", async () => {
  const page = readFileSync(join(ROOT, "docs/kubernetes.md"), "utf8");
  const [, yaml = ""] = /^```yaml\n(apiVersion: cert-manager[\s\S]*?)^```/m.exec(page) ?? [];
  const objects = parseAllDocuments(yaml).map((document) => document.toJS() as KubeObject);
  expect(objects).toHaveLength(3);
  for (const object of objects) expect(await wrongValues(object)).toBeUndefined();
  expect(unknownFields(objects)).toBe("");
  const issuers = objects.filter(({ kind }) => kind === "ClusterIssuer").map(({ metadata }) => metadata.name);
  for (const { metadata, spec } of certificates()) {
    expect(issuers, metadata.name).toContain(spec.issuerRef.name);
    expect(spec.issuerRef.kind).toBe("ClusterIssuer");
  }
});
