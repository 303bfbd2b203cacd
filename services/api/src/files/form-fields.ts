/** Collects the fields of an upload form, which may come before, between and after its files. Unknown fields are ignored. */
import type { FileOwner } from "@svc/contracts";
import { invalidRequest } from "@svc/service-kit";
import type { Part } from "./multipart/reader.ts";
import { ownerOf } from "./owner.ts";

const KNOWN = ["kind", "id", "version", "read_only"] as const;
type Field = (typeof KNOWN)[number];
const MAX_FIELD_BYTES = 1024;

export class FormFields {
  readonly #values = new Map<Field, string>();

  async add(part: Part): Promise<void> {
    const name = KNOWN.find((known) => known === part.name);
    if (name === undefined) return;
    if (this.#values.has(name)) throw invalidRequest([{ path: name, problem: "must be given at most once" }]);
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of part.body) {
      bytes += chunk.length;
      if (bytes > MAX_FIELD_BYTES) throw invalidRequest([{ path: name, problem: "is too long" }]);
      chunks.push(chunk);
    }
    this.#values.set(name, Buffer.concat(chunks).toString("utf8"));
  }

  owner(): FileOwner {
    return ownerOf({
      kind: this.#values.get("kind"),
      id: this.#values.get("id"),
      version: this.#values.get("version"),
    });
  }

  readOnly(): boolean {
    return this.#values.get("read_only")?.toLowerCase() === "true";
  }
}
