/**
 * Storage namespaces. The server derives them from the authenticated identity; callers never choose them.
 * Parts are percent-encoded before joining, so that no id can forge a separator.
 */
import { z } from "zod";

export const MAX_PRINCIPAL_ID_CHARS = 256;
/** The id of a tenant or user. A lone surrogate has no UTF-8 form, so it cannot be part of a namespace. */
export const principalId = z
  .string()
  .min(1)
  .max(MAX_PRINCIPAL_ID_CHARS)
  .refine((text) => text.isWellFormed());

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
