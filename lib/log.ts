/**
 * What the server says on stderr: one JSON line for each request, and what went wrong inside. Lines
 * hold names, numbers and fixed words; never a state, a token, a secret or an argument's value.
 */
export type RequestLine = {
  readonly method: string | undefined
  readonly tool: string | undefined
  /** HTTP status; 499 for a client that hung up, which nobody was sent. */
  readonly status: number
  /** What came of it, or the reason of a refusal. */
  readonly outcome: string
  /** Milliseconds from the request's head to its answer. */
  readonly ms: number
}

export type Log = {
  /** Undefined where nobody reads them, so that no line is made. */
  readonly request?: ((line: RequestLine) => void) | undefined
  readonly decision?: ((line: object) => void) | undefined
  /** A failure that nobody foresaw; the client only sees `Internal error`. */
  readonly failure: (thrown: unknown) => void
  /** A sentence for whoever starts the server. */
  readonly say: (sentence: string) => void
}

/** @param on false silences request and decision lines; the rest is always written. */
export function jsonLog(on: boolean): Log {
  const line = on ? (entry: object) => write(JSON.stringify(entry)) : undefined
  return {
    request: line,
    decision: line,
    failure: (thrown) => {
      const failure = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
      write(JSON.stringify({ failure }))
    },
    say: write,
  }
}

/** A full disk or a closed pipe under stderr costs the line, never the answer. */
function write(line: string): void {
  try {
    process.stderr.write(`${line}\n`)
  } catch {
    // There is nowhere left to say so.
  }
}
