/**
 * As little as an answer to JSON can cost on node:http: it reads the body, parses it, and writes the
 * fixed reply whose number is the path; release-ops gave these replies.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Reply = { readonly status: number; readonly headers: Record<string, string>; readonly body: string }

const replies: readonly Reply[] = JSON.parse(process.env.BENCH_REPLIES ?? '[]')
const byPath = new Map(replies.map((reply, index) => [`/${index}`, reply]))

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    JSON.parse(Buffer.concat(chunks).toString())
    const { status, headers, body } = byPath.get(request.url ?? '') ?? {
      status: 404,
      headers: {},
      body: '',
    }
    response.writeHead(status, headers).end(body)
  })
})
server.keepAliveTimeout = 65_000 // as release-ops has it: the value is in every answer
server.listen(0, '127.0.0.1', () => {
  console.log(`MCP on http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
