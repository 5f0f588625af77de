/** The bar chart that README shows: an SVG with a text for each bar, in the reader's light or dark colours. */

export type Bar = { readonly name: string; readonly value: number }
export type Group = { readonly name: string; readonly bars: readonly Bar[] }

const WIDTH = 720
const LEFT = 220
/** Room for the value behind the longest bar. */
const RIGHT = 70
const TOP = 44
const BAR = 16
const GAP = 14
/** Each with a contrast of at least 3:1 to the light and to the dark page. */
const COLOURS = ['#8b949e', '#2f81f7', '#db6d28']

/** @param unit what the bars count. */
export function chart(title: string, unit: string, groups: readonly Group[]): string {
  const longest = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)))
  const scale = (WIDTH - LEFT - RIGHT) / longest
  let y = TOP
  const parts = groups.flatMap(({ name, bars }) => {
    const label = text(LEFT - 110, y + (bars.length * BAR) / 2, name, 'end', 'group')
    const lines = bars.map((bar, index) => {
      const width = Math.max(bar.value * scale, 1).toFixed(1)
      const shown = `${bar.value.toFixed(0)} ${unit}`
      const middle = y + BAR / 2
      y += BAR
      const fill = COLOURS[index % COLOURS.length]
      return `<g>
  <title>${escaped(`${name}, ${bar.name}: ${shown}`)}</title>
  <rect x="${LEFT}" y="${middle - BAR / 2 + 1}" width="${width}" height="${BAR - 2}" rx="2" fill="${fill}"/>
  ${text(LEFT - 8, middle, bar.name, 'end')}
  ${text(LEFT + Number(width) + 6, middle, shown, 'start')}
</g>`
    })
    y += GAP
    return [label, ...lines]
  })
  const described = groups.map(({ name, bars }) => {
    const values = bars.map((bar) => `${bar.name} ${bar.value.toFixed(0)} ${unit}`)
    return `${name}: ${values.join(', ')}.`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-labelledby="title description">
<title id="title">${escaped(title)}</title>
<desc id="description">${escaped(described.join(' '))}</desc>
<style>
  .page { fill: #ffffff; }
  text { font: 12px system-ui, sans-serif; fill: #1f2328; dominant-baseline: central; }
  .title { font-size: 14px; font-weight: 600; }
  .group { font-weight: 600; }
  @media (prefers-color-scheme: dark) { .page { fill: #0d1117; } text { fill: #e6edf3; } }
</style>
<rect class="page" width="${WIDTH}" height="${y}"/>
${text(WIDTH / 2, 20, title, 'middle', 'title')}
${parts.join('\n')}
</svg>
`
}

function text(x: number, y: number, content: string, anchor: string, name?: string): string {
  const style = name === undefined ? '' : ` class="${name}"`
  return `<text x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}"${style}>${escaped(content)}</text>`
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
