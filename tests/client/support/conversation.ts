/**
 * One conversation of a LibreChat host, for tests: the published client with its four code tools, the host's own tools,
 * and the files that the client carries from call to call. Everything between a call of the model and the text that the
 * model reads is the client's code. Knows nothing of the service but its address and the caller's credential.
 */
import { randomUUID } from "node:crypto";
import {
  AIMessage,
  type CodeArtifact,
  type CodeFile,
  type CodeSession,
  createBashExecutionTool,
  createBashProgrammaticToolCallingTool,
  createCodeExecutionTool,
  createProgrammaticToolCallingTool,
  type ServiceOptions,
  ToolNode,
} from "@librechat/agents";
import type { HostTool } from "./host-tool.ts";

/** Under this key the client keeps the files of a conversation. */
const SESSION = "execute_code";

export interface ConversationOptions {
  /** Address of the service, with /v1. */
  url: string;
  tools?: readonly HostTool[];
  /** Makes the headers of a request that say who calls. */
  headers?: () => Readonly<Record<string, string>>;
  /** Settings of the client's code tools. */
  client?: Readonly<Partial<Omit<ServiceOptions, "baseUrl" | "authHeaders">>>;
  /** Id of LibreChat's conversation, of which the client then makes the hint of its session. */
  thread?: string;
}

/** What the model reads, and what the host gets beside it. */
export interface Reply {
  text: string;
  failed: boolean;
  artifact: CodeArtifact;
}

export interface Call {
  name: "execute_code" | "bash_tool" | "run_tools_with_code" | "run_tools_with_bash";
  args: Record<string, unknown>;
}

export class Conversation {
  /** Requests that the client has made to the execution routes: with n rounds of tool calls n + 1. */
  requests = 0;
  readonly #sessions = new Map<string, CodeSession>();
  readonly #node: ToolNode;
  readonly #thread: string | undefined;

  constructor({ url, tools = [], headers, client = {}, thread }: ConversationOptions) {
    this.#thread = thread;
    const authHeaders = async (): Promise<Record<string, string>> => {
      this.requests++;
      return { ...headers?.() };
    };
    const service = { baseUrl: url, authHeaders, ...client };
    this.#node = new ToolNode({
      tools: [
        createCodeExecutionTool({ ...service, user_id: "someone" }),
        createBashExecutionTool({ ...service, user_id: "someone" }),
        createProgrammaticToolCallingTool(service),
        createBashProgrammaticToolCallingTool(service),
        ...tools.map(({ instance }) => instance),
      ],
      toolRegistry: new Map(tools.map(({ definition }) => [definition.name, definition])),
      sessions: this.#sessions,
      ...(thread === undefined ? {} : { toolExecution: { sandbox: { statefulSessions: true } } }),
    });
  }

  /** The calls of one message of the model; they run at once. */
  async message(calls: readonly Call[], signal?: AbortSignal): Promise<Reply[]> {
    const tool_calls = calls.map((call) => ({ ...call, id: randomUUID(), type: "tool_call" as const }));
    const { messages } = await this.#node.invoke(
      { messages: [new AIMessage({ content: "", tool_calls })] },
      {
        ...(signal === undefined ? {} : { signal }),
        ...(this.#thread === undefined ? {} : { configurable: { thread_id: this.#thread } }),
      },
    );
    return tool_calls.map(({ id }) => {
      const message = messages.find(({ tool_call_id }) => tool_call_id === id);
      if (message === undefined) throw new Error(`no answer to ${id}`);
      return {
        text: message.content,
        failed: message.status === "error",
        artifact: message.artifact ?? {},
      };
    });
  }

  async #one(name: Call["name"], args: Call["args"], signal?: AbortSignal): Promise<Reply> {
    const [reply] = await this.message([{ name, args }], signal);
    return reply as Reply;
  }

  code(lang: string, code: string, args?: readonly string[]): Promise<Reply> {
    return this.#one("execute_code", { lang, code, ...(args === undefined ? {} : { args }) });
  }

  python(code: string): Promise<Reply> {
    return this.code("py", code);
  }

  bash(command: string, signal?: AbortSignal): Promise<Reply> {
    return this.#one("bash_tool", { command }, signal);
  }

  pythonWithTools(code: string, args: Call["args"] = {}, signal?: AbortSignal): Promise<Reply> {
    return this.#one("run_tools_with_code", { code, ...args }, signal);
  }

  bashWithTools(code: string, args: Call["args"] = {}, signal?: AbortSignal): Promise<Reply> {
    return this.#one("run_tools_with_bash", { code, ...args }, signal);
  }

  /** The files that go along with the next call. */
  get files(): readonly CodeFile[] {
    return this.#sessions.get(SESSION)?.files ?? [];
  }

  /** The file with this name; throws when the conversation has none or several. */
  file(name: string): CodeFile & { storage_session_id: string } {
    const [found, ...more] = this.files.filter((file) => file.name === name);
    if (found?.storage_session_id === undefined || more.length > 0) {
      throw new Error(`${name} among ${JSON.stringify(this.files)}`);
    }
    return { ...found, storage_session_id: found.storage_session_id };
  }

  /** Makes stored files part of the conversation, as a host does before the first call. */
  attach(files: readonly StoredFile[], owner: Owner = { kind: "user" }): void {
    const attached = files.map(
      (file): CodeFile => ({
        id: file.id,
        name: file.name,
        resource_id: file.id,
        ...(file.storage_session_id === undefined ? {} : { storage_session_id: file.storage_session_id }),
        ...owner,
      }),
    );
    const session_id = attached[0]?.storage_session_id ?? "";
    this.#sessions.set(SESSION, {
      session_id,
      files: [...this.files, ...attached],
      lastUpdated: Date.now(),
    });
  }
}

export type StoredFile = Pick<CodeFile, "id" | "name" | "storage_session_id">;
export type Owner = Pick<CodeFile, "kind" | "resource_id" | "version">;
