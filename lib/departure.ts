/**
 * When answers leave: those to requests that arrived together, a few in a row. Each write wakes up
 * whoever reads it, which takes as long as most of what was done for the answer; written in a row, the
 * later ones find their reader awake. `npm run bench` shows what an answer costs.
 */

/** How many: more would wait for one another while their readers have nothing to do. */
const IN_A_ROW = 4

/**
 * @returns what takes a task and runs it soon: with the tasks before and after it, in order, and at
 *   the latest at the end of this turn of the event loop, which is where Node waits for requests.
 */
export function departures(): (leave: () => void) => void {
  let waiting: (() => void)[] = []
  function run(): void {
    const row = waiting
    waiting = []
    for (const leave of row) leave()
  }
  return (leave) => {
    const length = waiting.push(leave)
    if (length === IN_A_ROW) run()
    else if (length === 1) setImmediate(run)
  }
}
