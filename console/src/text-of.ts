/** What a person is told of an error. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
