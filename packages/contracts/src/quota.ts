/**
 * Quotas of stored objects: how many bytes and objects an account may hold at once. An account is a storage namespace.
 * A user's uploads and outputs count against the user's namespace; the user's session states count against the snapshot namespace.
 */
import { z } from "zod";
import { ServiceError } from "./errors.ts";
import type { ObjectRecord } from "./messages/file-server.ts";
import { byteSize, grouped } from "./quantities.ts";
import { isSnapshotNamespace } from "./sessions.ts";

/** Header that names the account on an upload whose namespace is not known yet. */
export const ACCOUNT_HEADER = "x-svc-account";

export const STORED_KINDS = ["files", "session_states"] as const;
export type StoredKind = (typeof STORED_KINDS)[number];

const amount = (description: string, example: number) => z.int().nonnegative().meta({ description, example });

/** A quota that a write would exceed. `used`: bytes or objects that the account holds. `asked`: what the write would add. */
export const quotaSchema = z.object({
  kind: z.enum(STORED_KINDS).meta({ description: "Files, or states of sessions.", example: "files" }),
  resource: z
    .enum(["bytes", "objects"])
    .meta({ description: "What there is no room for.", example: "bytes" }),
  used: amount("What the caller has stored.", 996_000),
  limit: amount("What the caller may have stored.", 1_000_000),
  asked: amount("What would have been added.", 12_000),
});
export type Quota = z.infer<typeof quotaSchema>;

/** Each configured quota and the caller's use of it, including reservations of writes in progress. */
export const usageSchema = z
  .object({
    quotas: z
      .array(quotaSchema.omit({ asked: true }))
      .meta({ description: "None where there are no quotas." }),
  })
  .meta({ description: "The caller's quotas, and what is used of them." });
export type Usage = z.infer<typeof usageSchema>;

export const storedKindOf = (account: string): StoredKind =>
  isSnapshotNamespace(account) ? "session_states" : "files";

/** The account that an object counts against: always the uploader's. Files of agents and skills name it explicitly. */
export const accountOf = ({ account, namespace }: Pick<ObjectRecord, "account" | "namespace">): string =>
  account ?? namespace;

/** `900,000 of 1 MiB are in use`. */
export function quotaUse({ resource, used, limit }: Quota): string {
  return resource === "bytes"
    ? `${grouped(used)} of ${byteSize(limit)} are in use`
    : `${grouped(used)} of ${grouped(limit)} files are stored`;
}

const STATUS = { bytes: 413, objects: 429 } as const;
/** Every 429 must have a Retry-After. This one is a guess: room appears when files are deleted, or expire and are swept. */
const RETRY_SECONDS = 600;

export function quotaExceeded(quota: Quota, cause?: unknown): ServiceError {
  const { resource, asked } = quota;
  const what =
    resource === "bytes"
      ? `There is no room for ${grouped(asked)} more ${asked === 1 ? "byte" : "bytes"}`
      : `There is no room for ${grouped(asked)} more ${asked === 1 ? "file" : "files"}`;
  return new ServiceError("quota_exceeded", `${what}: ${quotaUse(quota)}.`, {
    status: STATUS[resource],
    extra: { quota },
    ...(resource === "objects" ? { headers: { "retry-after": String(RETRY_SECONDS) } } : {}),
    cause,
  });
}

/** The quota in a `quota_exceeded` error; undefined for any other error. */
export function quotaOf(error: unknown): Quota | undefined {
  if (!(error instanceof ServiceError) || error.code !== "quota_exceeded") return undefined;
  return quotaSchema.safeParse(error.extra?.quota).data;
}
