import { newId } from "@svc/contracts";
import { addressIn, batchKey, contentKey, keyOf, RECORDS, sessionPrefix } from "@svc/object-store/s3/keys";
import { describe, expect, test } from "vitest";

const at = { session: newId(), file: newId() };

describe("keys", () => {
  test("hold their address", () => {
    expect(addressIn(keyOf(RECORDS, at))).toEqual(at);
    expect(addressIn(contentKey(at, "n"))).toEqual(at);
    expect(keyOf(RECORDS, at).startsWith(sessionPrefix(RECORDS, at.session))).toBe(true);
  });

  test.each(["", "..", "a/b", `${at.session}/`, at.session.slice(1), `${at.session}x`])(
    "are never made of %j",
    (id) => {
      expect(() => keyOf(RECORDS, { ...at, file: id })).toThrow();
      expect(() => contentKey({ ...at, session: id }, "n")).toThrow();
      expect(() => sessionPrefix(RECORDS, id)).toThrow();
      expect(() => batchKey(id)).toThrow();
      expect(addressIn(`records/${at.session}/${id}`)).toBeUndefined();
    },
  );
});
