/** Names that the service keeps for sessions, and hints. */
import { describe, expect, it } from "vitest";
import { parseFiles } from "../../src/exec/refs.ts";
import { sessionOf } from "../../src/exec/session.ts";
import { FILE_RULES, refNamed, refusal } from "../support/exec-rules.ts";

const NAMES = ["session-workspace.tar", "a/.session_state.pkl", ".session_state.last/b"];
const parse = (keepsSessions: boolean, ...files: unknown[]) =>
  parseFiles(files, { ...FILE_RULES, keepsSessions });

describe("a reserved name", () => {
  it.each(NAMES)("%s is refused while sessions are kept, of references and of inline files", (name) => {
    for (const file of [refNamed(name), { name, content: "x" }]) {
      expect(refusal(() => parse(true, refNamed("ok"), file))).toMatchObject({
        code: "reserved_file_name",
        details: [{ path: "files[1].name" }],
      });
      expect(() => parse(false, file)).not.toThrow();
    }
  });
});

describe("where no sessions are kept", () => {
  it("what would choose one is ignored unread", async () => {
    const principal = { tenantId: "t", userId: "u" };
    for (const body of [{ runtime_session_hint: "ä" }, { runtime_session_hint: {} }, { session_id: 7 }, null])
      expect(await sessionOf(body, principal, undefined)).toBeUndefined();
  });
});
