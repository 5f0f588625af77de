/**
 * As little as an answer to JSON can cost on node:http: it reads the body, parses it, and writes the
 * fixed reply of the path, which is one that the server under test has given.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Reply = { readonly status: number; readonly headers: Record<string, string>; readonly body: string }

const replies = new Map<string, Reply>(Object.entries(JSON.parse(process.env.BENCH_REPLIES ?? '{}')))

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    JSON.parse(Buffer.concat(chunks).toString())
    const { status, headers, body } = replies.get(request.url ?? '') ?? {
      status: 404,
      headers: {},
      body: '',
    }
    response.writeHead(status, headers).end(body)
  })
})
server.keepAliveTimeout = 65_000 // as the server under test: its value is in every answer
server.listen(0, '127.0.0.1', () => {
  console.log(`MCP on http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
})
