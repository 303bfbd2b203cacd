/** The text of an error that is shown to a person. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
