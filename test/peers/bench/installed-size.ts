/** What has to be on a disk to run a server. */
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../instance.ts'

export type Size = { readonly bytes: number; readonly files: number; readonly packages: number }

/** What Node 22.18 or later needs of release-ops: it reads TypeScript by itself. */
const RUNTIME = ['package.json', 'server.ts', 'lib'] as const
const PEERS = join(ROOT, 'test', 'peers')
/** What servers/sdk.ts imports. */
const SDK_PACKAGES = ['@modelcontextprotocol/node', '@modelcontextprotocol/server'] as const

export function oursInstalled(): Size {
  return { ...sizeOf(RUNTIME.map((path) => join(ROOT, path))), packages: 0 }
}

/** The packages that npm installs for those two, found the way Node finds them. */
export function sdkInstalled(): Size {
  const found = new Set<string>()
  const visit = (name: string, from: string) => {
    const folder = folderOf(name, from)
    if (folder === undefined || found.has(folder)) return
    found.add(folder)
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
    const peers = Object.keys(peerDependencies).filter(
      (peer) => peerDependenciesMeta[peer]?.optional !== true,
    )
    for (const other of [...Object.keys(dependencies), ...peers]) visit(other, folder)
  }
  for (const name of SDK_PACKAGES) visit(name, PEERS)
  return { ...sizeOf([...found]), packages: found.size }
}

function folderOf(name: string, from: string): string | undefined {
  for (let folder = from; folder.startsWith(PEERS); folder = join(folder, '..')) {
    const candidate = join(folder, 'node_modules', name)
    if (statSync(candidate, { throwIfNoEntry: false }) !== undefined) return candidate
  }
  return undefined
}

/** A package's own node_modules are counted as packages of their own. */
function sizeOf(paths: readonly string[]): { bytes: number; files: number } {
  let [bytes, files] = [0, 0]
  for (const path of paths) {
    const stat = lstatSync(path)
    if (stat.isDirectory()) {
      const names = readdirSync(path).filter((name) => name !== 'node_modules')
      const inside = sizeOf(names.map((name) => join(path, name)))
      bytes += inside.bytes
      files += inside.files
    } else {
      bytes += stat.size
      files += 1
    }
  }
  return { bytes, files }
}
