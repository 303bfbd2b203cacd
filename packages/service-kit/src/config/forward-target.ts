/** Checks the target of the only port that leads out of the sandbox. Pure. */

const TARGET = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9])?):([1-9]\d{0,4})$/i;
const LAST_PORT = 65_535;

/** The port of `host:port`; undefined for any other text. */
export function portOfTarget(target: string): number | undefined {
  const port = Number(TARGET.exec(target)?.[1] ?? Number.NaN);
  const isTarget = port <= LAST_PORT && URL.parse(`http://${target}`) !== null;
  return isTarget ? port : undefined;
}

/** Problems with the pair of settings: a sandbox must reach only the allowed port. */
export function forwardProblems(target: string, allowedPort: number): string[] {
  if (target === "" || portOfTarget(target) === allowedPort) return [];
  return [
    `SANDBOX_FORWARD_TARGET=${target} has another port than SANDBOX_ALLOWED_LOCAL_NETWORK_PORT=${allowedPort}, the only one that leads out of the sandbox: set both to the egress gateway's`,
  ];
}
