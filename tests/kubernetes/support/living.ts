/** The environment of a component in a running pod, with the Secrets of the commands of docs/kubernetes.md. */
import { environmentOf, type KubeObject, mainContainer, type Workload } from "./objects.ts";
import { documentedSecrets } from "./secrets.ts";

let made: Map<string, Record<string, string>> | undefined;

/** References to other variables are filled in as a kubelet does it: in the order of the list, so that a later one is unknown. */
export function livingEnvironment(
  workload: Workload,
  objects: readonly KubeObject[],
): Record<string, string> {
  made ??= documentedSecrets();
  const { env = [] } = mainContainer(workload);
  const own = new Set(env.map(({ name }) => name));
  const values: Record<string, string> = {};
  for (const [name, value] of environmentOf(workload, objects))
    if (value !== undefined && !own.has(name)) values[name] = value;
  for (const { name, value, valueFrom } of env) {
    const { secretKeyRef, fieldRef } = valueFrom ?? {};
    if (value !== undefined)
      values[name] = value.replaceAll(/\$\((\w+)\)/g, (reference, of: string) => values[of] ?? reference);
    if (fieldRef !== undefined) values[name] = `${workload.metadata.name}-0`;
    if (secretKeyRef === undefined) continue;
    const found = made.get(`${workload.metadata.namespace}/${secretKeyRef.name}`)?.[secretKeyRef.key];
    if (found !== undefined) values[name] = found;
    // Values of `small`'s own store and of EKS are not in Secrets of the commands.
    else if (secretKeyRef.optional !== true) throw new Error(`nothing makes the secret ${name}`);
  }
  return values;
}
