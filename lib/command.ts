/**
 * A real action: a program that is started with the approved values, without a shell. The values go
 * into its arguments where the operator put `{service}` and the like, and into its environment.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import type { Action, Values } from './action.ts'
import type { Environment } from './environment.ts'
import type { Principal } from './principal.ts'

/** How much of the output is kept to find its last line, in bytes; the rest is read and dropped. */
const OUTPUT_BYTES = 64 * 1024
/** How much of the last line a result repeats, in characters. */
const LINE_LENGTH = 200
/** How long the output of a program that has ended is waited for, in milliseconds. */
const DRAIN_MS = 500
/** Between asking an overdue program to end and ending it, in milliseconds. */
const KILL_MS = 2000
const PLACEHOLDER = /\{([^{}]*)\}/g
/** The server's own secrets are no business of the program's. */
const PRIVATE = /^(STATE_SECRET|AUTH_|REDIS_URL|MCP_TOKEN|RELEASE_)/

/**
 * @param variable names the environment variable with the JSON array of program and arguments.
 * @param names what may stand in braces in it.
 * @param limitMs the longest that the program may run, in milliseconds.
 * @returns undefined when the variable is not set, or wrong, which is then a problem of the start.
 */
export function commandFrom(
  env: Environment,
  variable: string,
  names: readonly string[],
  limitMs: number,
): Action | undefined {
  const text = env.text(variable)
  if (text === undefined) return undefined
  const words = readWords(text)
  const [program, ...template] = words ?? []
  if (program === undefined || program === '') {
    env.problem(
      `${variable} must be a JSON array such as ["kubectl","rollout","undo","deployment/{service}"].`,
    )
    return undefined
  }
  const inArguments = template.flatMap((word) => [...word.matchAll(PLACEHOLDER)])
  if (/[{}]/.test(program) || inArguments.some(([, name = '']) => !names.includes(name))) {
    const known = names.map((name) => `{${name}}`).join(', ')
    env.problem(`${variable} may have ${known} in the arguments after the program, and no other braces.`)
    return undefined
  }
  return {
    faultOf,
    run: (values, reason, principal) => {
      const args = template.map((word) => word.replaceAll(PLACEHOLDER, (_, name) => String(values[name])))
      return runProgram(program, args, environmentOf(values, reason, principal), limitMs)
    },
  }
}

function readWords(text: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const words = Array.isArray(value) && value.every((word) => typeof word === 'string')
    return words && !value.some((word) => word.includes('\0')) ? value : undefined
  } catch {
    return undefined
  }
}

/** A value that begins with a dash would be read as an option; one with NUL can't be passed at all. */
function faultOf(values: Values): string | undefined {
  for (const [name, value] of Object.entries(values)) {
    if (String(value).startsWith('-')) return `${name} must not begin with -`
    if (String(value).includes('\0')) return `${name} must not hold a NUL character`
  }
  return undefined
}

function environmentOf(values: Values, reason: string, principal: Principal): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !PRIVATE.test(name))
  const given = Object.entries({ ...values, reason, principal: principal.subject })
  const release = given.map(([name, value]) => [
    `RELEASE_${name.toUpperCase()}`,
    String(value).replaceAll('\0', ''),
  ])
  return Object.fromEntries([...inherited, ...release])
}

/** Ends each program that runs: in a group of its own, it would outlive a server that is ended at once. */
const running = new Set<() => void>()
process.on('exit', () => {
  for (const abandon of running) abandon()
})

function runProgram(
  program: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  limitMs: number,
): Promise<string | undefined> {
  const name = basename(program) // which folder it lies in is nobody's business
  return new Promise((resolve) => {
    let child: ChildProcessByStdio<null, Readable, Readable>
    try {
      // Its own process group, so that a time-out also ends what it started.
      child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    } catch {
      return resolve(`${name} could not be started.`)
    }
    child.on('error', () => resolve(`${name} could not be started.`))
    if (child.pid === undefined) return // out of descriptors it has no streams either, whatever its type says
    let overdue = false
    const errors = tailOf(child.stderr)
    const output = tailOf(child.stdout)

    const endGroup = (signal: NodeJS.Signals) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal)
      } catch {
        // All of it has ended meanwhile.
      }
    }
    const timers = [
      setTimeout(() => {
        overdue = true
        endGroup('SIGTERM')
      }, limitMs),
      setTimeout(() => endGroup('SIGKILL'), limitMs + KILL_MS),
    ]
    const abandon = () => endGroup('SIGKILL')
    running.add(abandon)
    const settle = (failure: string | undefined) => {
      running.delete(abandon)
      for (const timer of timers) clearTimeout(timer)
      resolve(failure)
    }
    child.on('exit', (status, signal) => {
      if (overdue) endGroup('SIGKILL') // what it started and left behind
      const finish = () => {
        child.stdout.destroy()
        child.stderr.destroy()
        if (status === 0 && !overdue) return settle(undefined)
        const how = status === null ? `was ended by ${signal}` : `ended with status ${status}`
        const late = overdue ? ` after its ${limitMs / 1000} s` : ''
        settle(`${name} ${how}${late}.${lastLine(errors()) || lastLine(output())}`)
      }
      // A descendant may hold the pipes open for ever: what was read by then is what there is.
      const timer = setTimeout(finish, DRAIN_MS)
      child.on('close', () => {
        clearTimeout(timer)
        finish()
      })
    })
  })
}

/** Reads a stream to its end and keeps what came last. */
function tailOf(stream: Readable): () => Buffer {
  let tail = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-OUTPUT_BYTES)
  })
  return () => tail
}

/** In a sentence, or '' when there is none. */
function lastLine(output: Buffer): string {
  const line =
    output
      .toString('utf8')
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1)
      ?.trim() ?? ''
  return line === '' ? '' : ` Its last line: ${line.slice(0, LINE_LENGTH)}`
}
