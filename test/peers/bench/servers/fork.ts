/**
 * release-ops with BENCH_TOOLS tools more, as a fork would add them, and one that says how much heap
 * is in use after a forced collection.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { runUntilSignal } from '../../../../lib/lifecycle.ts'
import { plainTool, toolResult } from '../../../../lib/tool.ts'
import { compose } from '../../../../server.ts'

setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

const heapUsed = plainTool(
  { name: 'heap_used', description: 'Bytes in use.', inputSchema: { type: 'object' } },
  () => {
    if (typeof collect === 'function') collect()
    return toolResult({ text: String(process.memoryUsage().heapUsed) })
  },
)

const others = Array.from({ length: Number(process.env.BENCH_TOOLS) }, (_, index) =>
  plainTool(
    {
      name: `tool_${index}`,
      description: 'One of many.',
      inputSchema: {
        type: 'object',
        properties: { name: { type: 'string', 'x-mcp-header': 'Name' } },
        required: ['name'],
      },
    },
    ({ arguments: { name } }) => toolResult({ text: name }),
  ),
)

const { http, config } = await compose(process.env, { tools: [heapUsed, ...others] })
await runUntilSignal(http, config)
