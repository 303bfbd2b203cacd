/** LibreChat's client with sessions on: what the calls of a conversation leave for its next ones, and for nobody else. */
import { randomUUID } from "node:crypto";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Conversation, type ConversationOptions, type StoredFile } from "./support/conversation.ts";
import { startTokenService, type TokenService } from "./support/token-service.ts";

const ON = { SVC_PERSIST_SESSIONS: "true", ...OPEN_LIMITS };
let tokens: TokenService;

beforeAll(async () => {
  tokens = await startTokenService(ON);
});
afterAll(async () => {
  expect(await tokens?.stop()).toEqual([]);
});

/** A user whom no other test knows. */
function newUser(name: string = randomUUID()) {
  const headers = () => ({ Authorization: `Bearer ${tokens.token(name)}` });
  const talk = (client: ConversationOptions["client"] = {}, more: Partial<ConversationOptions> = {}) =>
    new Conversation({ url: tokens.url, headers, client, ...more });
  /** A conversation that the client names to the service. */
  const named = (runtimeSessionHint: string) => talk({ ...STATEFUL, runtimeSessionHint });
  const sessions = async () => {
    const answer = await new Api(tokens.url).send("GET", "/sessions", { headers: headers() });
    return (answer.json() as { sessions: { id: string; hint?: string }[] }).sessions.map(({ hint }) => hint);
  };
  return { headers, talk, named, sessions };
}
const STATEFUL = { executionProfile: "stateful", statefulSessions: true } as const;

const out = (text: string) => `stdout:\n${text}`;
/** Of files that the client does not know of: hidden ones are no outputs. */
const KEEP = "mkdir -p .state; echo $1 > .state/note";
const LOOK = "cat .state/note 2>/dev/null || echo nothing";

describe("a conversation with a hint", () => {
  test("carries variables, files and what the client cannot see from call to call, in every language", async () => {
    const { named, sessions } = newUser();
    const chat = named("conversation:1");
    const first = await chat.python(
      "import math as m\nrate = 2\ndef scaled(x): return x * rate\nopen('/mnt/data/a.txt', 'w').write('one')\nprint('made')",
    );
    expect(first.text).toMatch(/^stdout:\nmade\n/);
    expect(Object.keys(first.artifact).sort()).toEqual(["files", "session_id"]);
    await chat.bash(KEEP.replace("$1", "kept"));
    expect(
      (await chat.python("rate = 10\nprint(scaled(4), m.floor(1.5), open('a.txt').read())")).text,
    ).toContain(out("40 1 one"));
    expect(
      (await chat.code("js", "console.log(require('fs').readFileSync('.state/note', 'utf8'))")).text,
    ).toContain(out("kept"));
    expect(chat.files.map(({ name }) => name)).toEqual(["a.txt"]);
    expect(await sessions()).toEqual(["conversation:1"]);
  });

  test("changes and removes files that the client carries, too", async () => {
    const chat = newUser().named("files");
    await chat.bash("echo one > log.txt; echo two > gone.txt");
    const before = chat.file("log.txt");
    await chat.bash("echo more >> log.txt; rm gone.txt");
    const { id, storage_session_id } = before;
    expect(chat.file("log.txt").modified_from).toEqual({ id, storage_session_id });
    expect((await chat.bash("cat log.txt; ls")).text).toMatch(/^stdout:\none\nmore\nlog\.txt\nscript\.sh$/);
    expect(chat.files.map(({ name }) => name)).toEqual(["log.txt"]);
  });

  test("uses an uploaded file beside its restored state, and instead of a restored file of that name", async () => {
    const { named, headers } = newUser();
    const chat = named("uploads");
    await chat.python("total = 40\nopen('/mnt/data/data.csv', 'w').write('old')");
    const form = new FormData();
    form.append("file", new Blob(["2"]), "data.csv");
    const uploaded = await new Api(tokens.url).send("POST", "/upload", { headers: headers(), body: form });
    const other = named("uploads");
    other.attach((uploaded.json() as { files: StoredFile[] }).files);
    const reply = await other.python("print(total + int(open('data.csv').read()))");
    expect(reply.text).toContain(out("42"));
    expect((await named("uploads").python("print(open('data.csv').read())")).text).toContain(out("2"));
  });

  test("tells the model which variables were not kept", async () => {
    const reply = await newUser()
      .named("notes")
      .python("n = 1\nlog = open('/mnt/data/log.txt', 'w')\nprint(n)");
    expect(reply.text).toMatch(/stderr:\n\[sandbox\] Variables not kept: log \(cannot pickle /);
    expect(reply.failed).toBe(false);
  });

  test("keeps one of several calls of one message; all answer, and no file is lost", async () => {
    const { named } = newUser();
    const both = named("at-once");
    const calls = ["a", "b"].map((name) => ({
      name: "bash_tool" as const,
      args: { command: `echo ${name} > ${name}.txt; mkdir .state; echo ${name} > .state/note` },
    }));
    const replies = await both.message(calls);
    expect(replies.map(({ failed }) => failed)).toEqual([false, false]);
    expect((await both.bash("cat a.txt b.txt .state/note")).text).toMatch(/^stdout:\na\nb\n[ab]$/);
  });
});

describe("state stays apart", () => {
  test("between two conversations of a user", async () => {
    const { named, sessions } = newUser();
    const [one, two] = [named("one"), named("two")];
    await one.python("secret = 1");
    await one.bash(KEEP.replace("$1", "one"));
    expect((await two.python("print('secret' in globals())")).text).toBe(out("False"));
    expect((await two.bash(LOOK)).text).toBe(out("nothing"));
    expect((await one.bash(LOOK)).text).toBe(out("one"));
    expect(await sessions()).toEqual(["one", "two"]);
  });

  test("between two users, under the same hint and without one", async () => {
    const [ada, bob] = [newUser(), newUser()];
    for (const talk of [(user: typeof ada) => user.named("same"), (user: typeof ada) => user.talk()]) {
      await talk(ada).bash(KEEP.replace("$1", "ada"));
      expect((await talk(bob).bash(LOOK)).text).toBe(out("nothing"));
      expect((await talk(ada).bash(LOOK)).text).toBe(out("ada"));
    }
  });
});

describe("which session the client names", () => {
  test("the id of the conversation where LibreChat gives no other hint", async () => {
    const { talk, sessions } = newUser();
    const thread = randomUUID();
    await talk(STATEFUL, { thread }).python("n = 41");
    expect((await talk(STATEFUL, { thread }).python("print(n + 1)")).text).toBe(out("42"));
    expect(await sessions()).toEqual([thread]);
  });

  test.each<[string, ConversationOptions["client"]]>([
    ["without statefulSessions", { executionProfile: "stateful", runtimeSessionHint: "unsent" }],
    ["with the default profile", { ...STATEFUL, executionProfile: "default", runtimeSessionHint: "unsent" }],
    ["without a hint", STATEFUL],
  ])("none %s: all conversations of the user share the default session", async (_when, client) => {
    const { talk, sessions } = newUser();
    await talk(client).bash(KEEP.replace("$1", "shared"));
    expect((await talk(client).bash(LOOK)).text).toBe(out("shared"));
    expect(await sessions()).toEqual([undefined]);
  });

  test("that of an earlier execution, for a program that could call tools and needs none", async () => {
    const { named, talk, sessions } = newUser();
    const chat = named("earlier");
    await chat.bash(`${KEEP.replace("$1", "kept")}; echo file > f.txt`);
    await chat.python("n = 42");
    const unnamed = talk();
    unnamed.attach(chat.files);
    const noTools = { tool_manifest: [] };
    expect((await unnamed.bashWithTools(LOOK, noTools)).text).toContain(out("kept"));
    // The client makes a function of such a program: its own variables are the function's.
    expect((await unnamed.pythonWithTools("m = n + 1\nprint(m)", noTools)).text).toContain(out("43"));
    expect((await chat.python("print('m' in globals(), n)")).text).toContain(out("False 42"));
    expect(await sessions()).toEqual(["earlier"]);
  });
});

test("a session is not there for other users, nor for callers without credentials", async () => {
  const [owner, other] = [newUser(), newUser()];
  await owner.named("mine").bash(KEEP.replace("$1", "kept"));
  // The same hint is another session.
  expect((await other.named("mine").bash(LOOK)).text).toBe(out("nothing"));
  const api = new Api(tokens.url);
  const listed = await api.send("GET", "/sessions", { headers: owner.headers() });
  const [session] = listed.ok<{ sessions: { id: string }[] }>().sessions;
  const paths = [
    ["GET", `/sessions/${session?.id}/files`],
    ["DELETE", `/sessions/${session?.id}`],
  ] as const;
  for (const [method, path] of paths) {
    const foreign = await api.send(method, path, { headers: other.headers() });
    expect([foreign.status, foreign.refusal.error]).toEqual([404, "file_not_found"]);
    expect((await api.send(method, path)).status).toBe(401);
  }
  expect((await api.send("GET", "/sessions")).status).toBe(401);
  const files = await api.send("GET", `/sessions/${session?.id}/files`, { headers: owner.headers() });
  expect(files.ok<{ files: { name: string }[] }>().files.map(({ name }) => name)).toEqual([".state/note"]);
});

test("where the API keeps no sessions, a hint changes nothing", async () => {
  const off = await startTokenService({ ...ON, SVC_PERSIST_SESSIONS: "false" });
  try {
    const user = randomUUID();
    const headers = () => ({ Authorization: `Bearer ${off.token(user)}` });
    const client = { statefulSessions: true, runtimeSessionHint: "not a name of a session" };
    const chat = new Conversation({ url: off.url, headers, client });
    const first = await chat.bash(`${KEEP.replace("$1", "kept")}; echo file > x.txt`);
    expect(Object.keys(first.artifact).sort()).toEqual(["files", "session_id"]);
    expect((await chat.bash(`${LOOK}; cat x.txt`)).text).toContain(out("nothing\nfile"));
  } finally {
    expect(await off.stop()).toEqual([]);
  }
});
