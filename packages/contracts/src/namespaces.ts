/**
 * Storage namespaces: derived by the server from the authenticated identity, never chosen by the caller.
 * Parts are percent-encoded before joining, so that no id can forge a separator.
 */
export interface Principal {
  tenantId: string;
  userId: string;
}

export type FileOwner =
  | { kind: "user" }
  | { kind: "agent"; resourceId: string }
  | { kind: "skill"; resourceId: string; version: number };

const part = encodeURIComponent;

export function namespaceOf(principal: Principal, owner: FileOwner): string {
  const tenant = part(principal.tenantId);
  switch (owner.kind) {
    case "user":
      return `${tenant}:user:${part(principal.userId)}`;
    case "agent":
      return `${tenant}:agent:${part(owner.resourceId)}`;
    case "skill":
      return `${tenant}:skill:${part(owner.resourceId)}:v:${owner.version}`;
  }
}

/** The user, agent or skill id inside a namespace. */
export function resourceIdOf(namespace: string): string {
  return decodeURIComponent(namespace.split(":")[2] ?? "");
}

export const LOCAL_PRINCIPAL: Principal = { tenantId: "local", userId: "local-user" };
