import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { type MemoryGraph, memoryOf } from '../../api/memory.ts';
import { hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { placeNodes } from './force-layout.ts';

/** The field that is drawn on; it is stretched to what room there is. */
const [WIDTH, HEIGHT] = [1000, 520];
const MAX_LABEL = 26;

/** What a record is linked with, and those with each other. */
export function GraphCard({ id }: { id: string }) {
  const hops = useSignal(1);
  const graph = useResource((signal) => memoryOf(client).graph(id, hops.value, signal), [id, hops.value]);
  return (
    <section class="card stack" aria-label="Links">
      <div class="row">
        <h2>Links</h2>
        <label class="small soft">
          Steps{' '}
          <select
            class="input"
            value={hops.value}
            onChange={(event) => (hops.value = Number(event.currentTarget.value))}
          >
            <option value={1}>1</option>
            <option value={2}>2</option>
            <option value={3}>3</option>
          </select>
        </label>
      </div>
      {graph.error.value !== null && <ErrorNotice error={graph.error.value} onRetry={graph.reload} />}
      {graph.data.value === null && graph.error.value === null && <Loading what="Reading links" />}
      {graph.data.value !== null && <Picture graph={graph.data.value} />}
    </section>
  );
}

function Picture({ graph: { nodes, edges, isComplete } }: { graph: MemoryGraph }) {
  const places = useMemo(() => placeNodes(nodes, edges), [nodes, edges]);
  if (nodes.length < 2) return <p class="soft">It is linked with nothing.</p>;
  const at = (id: string) => {
    const { x, y } = places.get(id) ?? { x: 0.5, y: 0.5 };
    return { x: x * WIDTH, y: y * HEIGHT };
  };
  const heaviest = Math.max(...edges.map(({ weight }) => weight), Number.MIN_VALUE);
  return (
    <>
      <svg
        class="graph"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="group"
        aria-label={`${formatCount(nodes.length)} linked records`}
      >
        {edges.map(({ from, to, relation, weight }) => {
          const [a, b] = [at(from), at(to)];
          return (
            <line
              key={`${from} ${to} ${relation}`}
              x1={a.x}
              y1={a.y}
              x2={b.x}
              y2={b.y}
              stroke-width={1 + (3 * weight) / heaviest}
            >
              <title>{visibleText(relation)}</title>
            </line>
          );
        })}
        {nodes.map(({ id, kind, hops, text }) => {
          const { x, y } = at(id);
          const words = visibleText(text.slice(0, MAX_LABEL).replaceAll(/\s+/g, ' '));
          return (
            <a key={id} href={hrefOf('memory', id)} aria-label={`${words} ${visibleText(kind)}`}>
              <circle cx={x} cy={y} r={hops === 0 ? 13 : 9} data-series={Math.min(6, hops + 1)} />
              <text x={x} y={y + 26} text-anchor="middle">
                {words}
              </text>
            </a>
          );
        })}
      </svg>
      <p class="small soft">
        {formatCount(nodes.length)} records, {formatCount(edges.length)} links: {relationsOf(edges)}.
        {!isComplete && ' Only the strongest are drawn.'}
      </p>
    </>
  );
}

const relationsOf = (edges: MemoryGraph['edges']): string =>
  [...new Set(edges.map(({ relation }) => visibleText(relation)))].join(', ');
