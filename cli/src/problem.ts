/** A failure that a person can act on: what is wrong and what to do. Printed without a stack trace. */
export class Problem extends Error {
  readonly advice: string | undefined;
  readonly exitCode: number;

  constructor(message: string, advice?: string, exitCode = 1) {
    super(message);
    this.name = "Problem";
    this.advice = advice;
    this.exitCode = exitCode;
  }
}

/** The exit code of a command line that is not understood. */
export const USAGE_EXIT_CODE = 2;
