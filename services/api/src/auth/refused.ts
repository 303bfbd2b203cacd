/** Why a caller is not who he says: for the log alone. Every cause gives the caller the same answer. */
export class TokenRefused extends Error {
  constructor(cause: string) {
    super(cause);
    this.name = "TokenRefused";
  }
}
