/** Which tests a file has, read from its text: running them to ask would take minutes. */

/** `test(` at the start of a line, and the literal that follows; `test.skip(` and `test.todo(` are none. */
const REGISTRATION = /^[ \t]*test\(\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/gm
const BLOCK_COMMENT = /^[ \t]*\/\*[\s\S]*?\*\//gm

/**
 * @returns how many tests of this name a file registers. Where a name is put together when the file
 * runs, what fills the gap has to stand in the file as a text of its own.
 */
export function registrationsOf(name: string, source: string): number {
  const literals = [...source.replace(BLOCK_COMMENT, '').matchAll(REGISTRATION)]
  return literals.filter(([, literal = '']) => {
    const fixed = literal.slice(1, -1).split(/(?:\$\{[^}]*\})+/)
    const patterns = fixed.map((text) =>
      text.replace(/\\(.)/g, '$1').replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'),
    )
    const filled = new RegExp(`^${patterns.join('(.+)')}$`).exec(name)?.slice(1)
    return filled?.every((text) => source.includes(`'${text}'`)) === true
  }).length
}
