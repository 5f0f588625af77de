/**
 * Environment variables to a configuration, or to the list of everything that is wrong with them,
 * each with what to do about it: a bad deployment ends before its first request.
 */
import { randomBytes } from 'node:crypto'
import { type HttpRules, isHost, isOrigin } from './http-rules.ts'
import { MIN_SECRET } from './seal.ts'

export type Environment = { readonly [name: string]: string | undefined }

export type Config = {
  readonly host: string
  readonly port: number
  readonly rules: HttpRules
  readonly maxBodyBytes: number
  /** The first signs, all open. */
  readonly secrets: readonly Uint8Array[]
  readonly audience: string
  readonly ttlMs: number
  readonly logRequests: boolean
  /** What whoever starts the server should know; not wrong, so it starts. */
  readonly warnings: readonly string[]
}

const MAKE_SECRET = `node -p "require('crypto').randomBytes(32).toString('base64url')"`
const LOOPBACK = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/i
/** 64 MiB: JSON.parse of more would hold up every other request for seconds. */
const BODY_LIMIT = 64 * 1024 * 1024

/** @throws Error whose message has a line for each problem there is. */
export function readConfig(env: Environment): Config {
  const problems: string[] = []
  const warnings: string[] = []

  const host = (env.HOST ?? '127.0.0.1').replace(/^\[(.*)\]$/, '$1')
  if (host.trim() === '')
    problems.push('HOST is empty: unset it, or give an address such as 127.0.0.1.')
  const loopback = LOOPBACK.test(host)
  const config: Config = {
    host,
    port: integer('PORT', 3000, 0, 65_535, 'a port number; 0 picks a free one'),
    rules: {
      loopback,
      allowedOrigins: list(
        'ALLOWED_ORIGINS',
        isOrigin,
        'an origin such as https://app.example.com',
      ),
      allowedHosts: list(
        'ALLOWED_HOSTS',
        isHost,
        'a host such as mcp.example.com or mcp.example.com:8443',
      ),
    },
    maxBodyBytes: integer('MAX_BODY_BYTES', 1_048_576, 1, BODY_LIMIT, 'a number of bytes'),
    secrets: secrets(),
    audience: audience(),
    ttlMs: integer('STATE_TTL_SECONDS', 300, 1, 900, 'a number of seconds') * 1000,
    logRequests: oneOf('LOG', ['on', 'off']) === 'on',
    warnings,
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return config

  function integer(name: string, fallback: number, min: number, max: number, what: string): number {
    const text = env[name]
    if (text === undefined) return fallback
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    problems.push(
      `${name} must be ${what}, from ${min} to ${max}: set it so, or unset it for ${fallback}.`,
    )
    return fallback
  }

  function list(
    name: string,
    valid: (entry: string) => boolean,
    what: string,
  ): Set<string> | undefined {
    const entries = (env[name] ?? '')
      .toLowerCase()
      .split(',')
      .map((entry) => entry.trim())
      .filter(Boolean)
    for (const entry of entries) {
      if (!valid(entry))
        problems.push(`${name} has ${JSON.stringify(entry)}: each entry must be ${what}.`)
    }
    return entries.length === 0 ? undefined : new Set(entries)
  }

  function secrets(): Uint8Array[] {
    const signing = secret('STATE_SECRET')
    const accepted = secret('STATE_SECRET_ACCEPTED')
    if (signing === undefined) {
      if (!loopback)
        problems.push(`STATE_SECRET is required when HOST isn't loopback. Make one: ${MAKE_SECRET}`)
      if (accepted !== undefined)
        problems.push('STATE_SECRET_ACCEPTED needs a STATE_SECRET beside it: set both.')
      warnings.push(
        `STATE_SECRET is not set: a random one is used, so that confirmations end with this process and no other instance accepts them. Make one: ${MAKE_SECRET}`,
      )
      return [randomBytes(MIN_SECRET)]
    }
    if (accepted === undefined) return [signing]
    if (signing.equals(accepted))
      problems.push(
        'STATE_SECRET_ACCEPTED equals STATE_SECRET: unset it, or give the other secret of the rotation.',
      )
    return [signing, accepted]
  }

  function secret(name: string): Buffer | undefined {
    const text = env[name]
    if (text === undefined) return undefined
    const bytes = Buffer.from(text, 'utf8')
    if (bytes.length < MIN_SECRET) {
      problems.push(
        `${name} has ${bytes.length} bytes and needs at least ${MIN_SECRET}. Make one: ${MAKE_SECRET}`,
      )
    }
    return bytes
  }

  function audience(): string {
    const name = env.STATE_AUDIENCE ?? 'release-ops'
    if (name.trim() === '')
      problems.push('STATE_AUDIENCE is empty: unset it, or give this server a name of its own.')
    return name
  }

  function oneOf(name: string, [fallback, ...others]: readonly [string, ...string[]]): string {
    const value = env[name] ?? fallback
    if (value === fallback || others.includes(value)) return value
    problems.push(`${name} must be ${[fallback, ...others].join(' or ')}.`)
    return fallback
  }
}
