/** Types that the adapters use from other packages. Only users of an adapter install these packages. */
declare module "@langchain/core/tools" {
  export interface StructuredToolInterface {
    name: string;
    description: string;
    invoke: (input: unknown, config?: { signal?: AbortSignal }) => Promise<unknown>;
  }
  export function tool<Input, Artifact>(
    run: (input: Input, config?: { signal?: AbortSignal }) => Promise<[content: string, artifact: Artifact]>,
    fields: { name: string; description: string; schema: object; responseFormat: "content_and_artifact" },
  ): StructuredToolInterface;
}

declare module "ai" {
  export interface Schema<Value> {
    readonly _type: Value;
  }
  export interface Tool<Input, Output> {
    description?: string;
    inputSchema: Schema<Input>;
    execute?: (input: Input, options: { abortSignal?: AbortSignal }) => Promise<Output>;
    toModelOutput?: (options: { output: Output }) => { type: "text"; value: string };
  }
  export function jsonSchema<Value>(schema: object): Schema<Value>;
  export function tool<Input, Output>(tool: Tool<Input, Output>): Tool<Input, Output>;
}
