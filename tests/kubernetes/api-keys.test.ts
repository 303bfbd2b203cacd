/** The component `api-keys`, in a folder as an operator has it, with the commands of docs/kubernetes.md. */
import { parseApiKeys } from "@svc/contracts";
import { loadConfig } from "@svc/service-kit/config/load";
import { expect, it } from "vitest";
import { livingEnvironment } from "./support/living.ts";
import { type KubeObject, mainContainer, objectsOf, ownWorkloads } from "./support/objects.ts";
import { unknownFields, wrongValues } from "./support/schemas.ts";
import { documentedApiKeys } from "./support/secrets.ts";

const FOLDER = "/etc/svc/api-keys";
const workloads = () => ownWorkloads(objectsOf("own"));

it("its objects are ones that Kubernetes takes", async () => {
  const objects: KubeObject[] = objectsOf("own");
  for (const object of objects) expect(await wrongValues(object)).toBeUndefined();
  expect(unknownFields(objects)).toBe("");
});

it("the API alone has the keys, in a folder, readable for its user's own group", () => {
  for (const workload of workloads()) {
    const { volumes = [], securityContext } = workload.spec.template.spec;
    const secrets = volumes.filter((volume) => "secret" in volume);
    if (workload.metadata.name !== "api") {
      expect(secrets, workload.metadata.name).toEqual([]);
      continue;
    }
    expect(secrets).toEqual([
      { name: "api-keys", secret: { secretName: "svc-api-keys", defaultMode: 0o440 } },
    ]);
    // Without a path below the volume, which a kubelet would never renew.
    expect(mainContainer(workload).volumeMounts).toContainEqual({
      name: "api-keys",
      mountPath: FOLDER,
      readOnly: true,
    });
    expect(securityContext?.fsGroup).toBe(securityContext?.runAsGroup);
    expect(securityContext?.runAsUser).not.toBe(0);
    expect(volumes).toContainEqual({ name: "jwt-keys", configMap: { name: "svc-jwt-keys", optional: true } });
  }
});

it("the commands make the Secret whose file the API is told of", () => {
  const { keys, mode } = documentedApiKeys();
  expect(mode).toBe(0o600);
  const { records, problems } = parseApiKeys(keys);
  expect(problems).toEqual([]);
  expect(records).toMatchObject([{ name: "laptop", tenant: "main", user: "alice" }]);
  const api = workloads().find(({ metadata }) => metadata.name === "api");
  if (api === undefined) throw new Error("there is no API");
  const config = loadConfig("api", livingEnvironment(api, objectsOf("own")));
  expect(config.SVC_API_KEYS_FILE).toBe(`${FOLDER}/api-keys.jsonl`);
});
