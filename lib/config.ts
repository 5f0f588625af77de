/** The configuration that every server of this kind needs, from environment variables. */
import { randomBytes } from 'node:crypto'
import type { Environment } from './environment.ts'
import { type HttpRules, isHost, isOrigin } from './http-rules.ts'
import { MIN_SECRET } from './seal.ts'

export type Config = {
  readonly host: string
  readonly port: number
  readonly rules: HttpRules
  readonly maxBodyBytes: number
  /** The first seals, all of them open. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]]
  /** This server's name in a state, or undefined when none was given. */
  readonly audience: string | undefined
  readonly ttlMs: number
  /** The longest that an action may take, in milliseconds. */
  readonly actionMs: number
  /** Whether requests and decisions are logged. */
  readonly logging: boolean
}

const MAKE_SECRET = `Make one: node -p "require('crypto').randomBytes(32).toString('base64url')"`
const LOOPBACK = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/i
const ORIGIN_RULE =
  'an origin as browsers send it, such as https://app.example.com: no path, no default port, ASCII'
/** 64 MiB: parsing more would hold up every other request for seconds. */
const BODY_LIMIT = 64 * 1024 * 1024

/** Problems are left with the environment, whose `finish` reports them. */
export function readConfig(env: Environment): Config {
  const host = (env.text('HOST') ?? '127.0.0.1').replace(/^\[(.*)\]$/, '$1')
  const loopback = LOOPBACK.test(host)
  return {
    host,
    port: env.integer('PORT', 3000, 0, 65_535, 'a port number; 0 picks a free one'),
    rules: {
      loopback,
      allowedOrigins: env.list('ALLOWED_ORIGINS', isOriginOfBrowsers, ORIGIN_RULE),
      allowedHosts: env.list('ALLOWED_HOSTS', isHost, 'a host such as mcp.example.com, without a scheme'),
    },
    maxBodyBytes: env.integer('MAX_BODY_BYTES', 1_048_576, 1, BODY_LIMIT, 'a number of bytes'),
    secrets: readSecrets(env, loopback),
    audience: readAudience(env),
    ttlMs: env.integer('STATE_TTL_SECONDS', 300, 1, 900, 'a number of seconds') * 1000,
    actionMs: env.integer('ACTION_TIMEOUT_SECONDS', 60, 1, 600, 'a number of seconds') * 1000,
    logging: env.choice('LOG', ['on', 'off']) === 'on',
  }
}

/** Browsers drop a default port and write names in ASCII: any other spelling would never match. */
function isOriginOfBrowsers(text: string): boolean {
  return isOrigin(text) && URL.canParse(text) && new URL(text).origin === text
}

/** It stands in every state, which must stay short. */
function readAudience(env: Environment): string | undefined {
  const audience = env.text('STATE_AUDIENCE')
  if ((audience?.length ?? 0) > 255)
    env.problem('STATE_AUDIENCE is longer than 255 characters: shorten it.')
  return audience
}

function readSecrets(env: Environment, loopback: boolean): Config['secrets'] {
  const sealing = readSecret(env, 'STATE_SECRET')
  const accepted = readSecret(env, 'STATE_SECRET_ACCEPTED')
  if (sealing === undefined) {
    const meant = env.hasProblem('STATE_SECRET_FILE')
    if (!loopback && !meant)
      env.problem(`STATE_SECRET is required when HOST isn't loopback. ${MAKE_SECRET}`)
    if (accepted !== undefined && !meant)
      env.problem('STATE_SECRET_ACCEPTED needs STATE_SECRET beside it: set both.')
    const effect = 'so confirmations end with this process and no other instance accepts them'
    env.warn(`STATE_SECRET is not set: a random one is used, ${effect}. ${MAKE_SECRET}`)
    return [randomBytes(MIN_SECRET)]
  }
  if (accepted === undefined) return [sealing]
  if (sealing.equals(accepted)) {
    env.problem(
      'STATE_SECRET_ACCEPTED equals STATE_SECRET: unset it, or give the other secret of the rotation.',
    )
  }
  return [sealing, accepted]
}

/** A secret from a variable, or from the file that `NAME_FILE` names without its last newline. */
function readSecret(env: Environment, name: string): Buffer | undefined {
  const text = env.raw(name)
  const file = env.file(`${name}_FILE`)
  if (text !== undefined && file !== undefined) env.problem(`Set either ${name} or ${name}_FILE, not both.`)
  const bytes = text === undefined ? file && withoutNewline(file) : Buffer.from(text, 'utf8')
  if (bytes !== undefined && bytes.length < MIN_SECRET) {
    env.problem(`${name} has ${bytes.length} bytes and needs at least ${MIN_SECRET}. ${MAKE_SECRET}`)
  } else if (bytes?.toString('latin1').trim() === '') {
    env.problem(`${name} is nothing but white space. ${MAKE_SECRET}`)
  }
  return bytes
}

function withoutNewline(bytes: Buffer): Buffer {
  const end = bytes.at(-1) === 0x0a ? (bytes.at(-2) === 0x0d ? -2 : -1) : undefined
  return bytes.subarray(0, end)
}
