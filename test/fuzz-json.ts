/**
 * JSON as it is written rather than as it is read: here a member may stand twice, a name may be spelled
 * with escapes, and in the place of a value there may be any text.
 */
export type Written = { members: Member[] } | { items: Written[] } | { text: string }
/** The name as JSON text, quotes included. */
export type Member = { name: string; value: Written }

/** A place in a text where something else can be put. */
export type Place = { readonly get: () => Written; readonly put: (value: Written) => void }

export function written(value: unknown): Written {
  if (Array.isArray(value)) return { items: value.map(written) }
  if (typeof value !== 'object' || value === null) return { text: JSON.stringify(value) }
  const members = Object.entries(value).map(([name, inner]) => memberOf(name, written(inner)))
  return { members }
}

export function memberOf(name: string, value: Written): Member {
  return { name: JSON.stringify(name), value }
}

/** @param space what stands between two tokens. */
export function write(json: Written, space: () => string = () => ''): string {
  if ('text' in json) return json.text
  const list = (open: string, parts: string[], close: string) =>
    open + space() + parts.join(`${space()},${space()}`) + space() + close
  if ('items' in json)
    return list(
      '[',
      json.items.map((item) => write(item, space)),
      ']',
    )
  const parts = json.members.map(({ name, value }) => `${name}${space()}:${space()}${write(value, space)}`)
  return list('{', parts, '}')
}

/** The first member of this name, however deep its way: `find(json, 'params', 'name')`. */
export function find(json: Written, ...path: string[]): Place | undefined {
  let place: Place | undefined
  for (const name of path) {
    const here = place === undefined ? json : place.get()
    const member = 'members' in here ? here.members.find((m) => m.name === JSON.stringify(name)) : undefined
    if (member === undefined) return undefined
    place = placeOf(member)
  }
  return place
}

const placeOf = (member: Member): Place => ({
  get: () => member.value,
  put: (value) => {
    member.value = value
  },
})

/** Every place below, and every list of members, in the order of the text. */
export function inside(json: Written): { places: Place[]; objects: Member[][] } {
  const places: Place[] = []
  const objects: Member[][] = []
  const visit = (here: Written) => {
    if ('items' in here) {
      for (const [index, item] of here.items.entries()) {
        places.push({
          get: () => here.items[index] ?? item,
          put: (value) => {
            here.items[index] = value
          },
        })
        visit(item)
      }
    } else if ('members' in here) {
      objects.push(here.members)
      for (const member of here.members) {
        places.push(placeOf(member))
        visit(member.value)
      }
    }
  }
  visit(json)
  return { places, objects }
}

/** The same text for a reader of JSON, with some of its characters escaped. */
export function escaped(text: string, when: () => boolean): string {
  return text.replace(/(?<!\\)[A-Za-z0-9]/g, (c, at: number) => {
    const inEscape = /\\u[0-9a-f]{0,3}$/i.test(text.slice(Math.max(0, at - 6), at))
    return inEscape || !when() ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
