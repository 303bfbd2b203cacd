/**
 * The parts of the npm package @librechat/agents that the client tests use, as they see them. With this the type check
 * needs no installed client.
 */
declare module "@librechat/agents" {
  /** A stored file as the client keeps it between calls and sends it along as a reference. */
  export interface CodeFile {
    id: string;
    storage_session_id?: string;
    name: string;
    kind?: "user" | "agent" | "skill";
    resource_id?: string;
    version?: number;
    inherited?: true;
    modified_from?: { id: string; storage_session_id: string };
  }

  export interface CodeSession {
    session_id: string;
    files?: CodeFile[];
    lastUpdated: number;
  }

  /** What the client hands to its host beside the text for the model. */
  export interface CodeArtifact {
    session_id?: string;
    files?: CodeFile[];
    deleted_files?: string[];
  }

  export interface ToolDefinition {
    name: string;
    description?: string;
    parameters?: object;
    allowed_callers?: readonly ("direct" | "code_execution")[];
    toolType?: "builtin" | "mcp" | "action";
    serverName?: string;
  }

  export interface Tool {
    name: string;
    description: string;
    invoke(input: unknown, config?: { signal?: AbortSignal }): Promise<unknown>;
    /** Set by the host on tools of MCP servers. */
    mcp?: boolean;
  }

  export interface ServiceOptions {
    baseUrl: string;
    authHeaders: () => Promise<Record<string, string>>;
    executionProfile?: "default" | "stateful";
    statefulSessions?: boolean;
    runtimeSessionHint?: string;
    /** A project of the user's that the bash tools work in. */
    workspaceId?: string;
  }

  export interface ProgrammaticOptions extends ServiceOptions {
    runTimeoutMs?: number;
  }

  export interface ExecOptions extends ServiceOptions {
    user_id?: string;
  }

  export function createCodeExecutionTool(options: ExecOptions): Tool;
  export function createBashExecutionTool(options: ExecOptions): Tool;
  export function createProgrammaticToolCallingTool(options: ProgrammaticOptions): Tool;
  export function createBashProgrammaticToolCallingTool(options: ProgrammaticOptions): Tool;

  export function fetchSessionFiles(
    baseUrl: string,
    sessionId: string,
    scope: { kind: "user" | "agent"; id: string },
    authHeaders: () => Promise<Record<string, string>>,
  ): Promise<CodeFile[]>;

  export function tool(
    answer: (input: Record<string, unknown>) => unknown,
    fields: { name: string; description: string; schema: object; responseFormat?: "content_and_artifact" },
  ): Tool;

  export class AIMessage {
    constructor(fields: {
      content: string;
      tool_calls: { id: string; name: string; args: Record<string, unknown>; type: "tool_call" }[];
    });
  }

  export interface ToolMessage {
    tool_call_id: string;
    content: string;
    status?: "success" | "error";
    artifact?: CodeArtifact;
  }

  /** Runs the tool calls of a message, and carries the files of code tools from one call to the next. */
  export class ToolNode {
    constructor(options: {
      tools: readonly Tool[];
      toolRegistry: ReadonlyMap<string, ToolDefinition>;
      sessions: Map<string, CodeSession>;
      /** With `statefulSessions` the calls carry the conversation's id as the hint of their session. */
      toolExecution?: { sandbox: { statefulSessions: boolean } };
    });
    invoke(
      input: { messages: readonly AIMessage[] },
      config?: { signal?: AbortSignal; configurable?: { thread_id: string } },
    ): Promise<{ messages: ToolMessage[] }>;
  }
}
