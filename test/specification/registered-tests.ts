/** Which tests a file has, read from its text: running them to ask would take minutes. */

/** `test(` at the start of a line, and the literal that follows; `test.skip(` and `test.todo(` are none. */
const REGISTRATION = /^[ \t]*test\(\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/gm
const BLOCK_COMMENT = /^[ \t]*\/\*[\s\S]*?\*\//gm

/** @returns the names, with `…` for what is only known when the file runs. */
export function registeredTests(source: string): string[] {
  const literals = [...source.replace(BLOCK_COMMENT, '').matchAll(REGISTRATION)]
  return literals.map(([, literal = '']) =>
    literal
      .slice(1, -1)
      .replace(/(\$\{[^}]*\})+/g, '…')
      .replace(/\\(.)/g, '$1'),
  )
}
