import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { type MemoryGraph, memoryOf } from '../../api/memory.ts';
import { hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { placeNodes } from './force-layout.ts';
import { kindLabel } from '../../components/kind-label.ts';

const text = messages.memory;

/** The SVG view box, scaled to the available width. */
const [WIDTH, HEIGHT] = [1000, 520];
const MAX_LABEL_CHARS = 26;

/** The neighbourhood of a record in the memory graph. */
export function GraphCard({ id }: { id: string }) {
  const hops = useSignal(1);
  const graph = useResource((signal) => memoryOf(client).graph(id, hops.value, signal), [id, hops.value]);
  return (
    <section class="card stack" aria-label={text.links}>
      <div class="row">
        <h2>{text.links}</h2>
        <label class="small soft">
          {text.depth}{' '}
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
      {graph.data.value === null && graph.error.value === null && <Loading label={text.loadingLinks} />}
      {graph.data.value !== null && <GraphDiagram graph={graph.data.value} />}
    </section>
  );
}

function GraphDiagram({ graph: { nodes, edges, isComplete } }: { graph: MemoryGraph }) {
  const positions = useMemo(() => placeNodes(nodes, edges), [nodes, edges]);
  if (nodes.length < 2) return <p class="soft">{text.noLinks}</p>;
  const positionOf = (id: string) => {
    const { x, y } = positions.get(id) ?? { x: 0.5, y: 0.5 };
    return { x: x * WIDTH, y: y * HEIGHT };
  };
  const maxWeight = Math.max(...edges.map(({ weight }) => weight), Number.MIN_VALUE);
  return (
    <>
      <svg class="graph" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={text.linkedRecords(nodes.length)}>
        {edges.map(({ from, to, relation, weight }) => {
          const [a, b] = [positionOf(from), positionOf(to)];
          return (
            <line
              key={`${from} ${to} ${relation}`}
              x1={a.x}
              y1={a.y}
              x2={b.x}
              y2={b.y}
              stroke-width={1 + (3 * weight) / maxWeight}
            >
              <title>{visibleText(relation)}</title>
            </line>
          );
        })}
        {nodes.map(({ id, kind, hops, text: passage }) => {
          const { x, y } = positionOf(id);
          const label = visibleText(passage.slice(0, MAX_LABEL_CHARS).replaceAll(/\s+/g, ' '));
          return (
            <a key={id} href={hrefOf('memory', id)} aria-label={`${label} ${kindLabel(kind)}`}>
              <circle cx={x} cy={y} r={hops === 0 ? 13 : 9} data-series={Math.min(6, hops + 1)} />
              <text x={x} y={y + 26} text-anchor="middle">
                {label}
              </text>
            </a>
          );
        })}
      </svg>
      <p class="small soft">
        {text.linkSummary(nodes.length, edges.length, relationsOf(edges))}
        {!isComplete && ` ${text.linksIncomplete}`}
      </p>
    </>
  );
}

const relationsOf = (edges: MemoryGraph['edges']): string =>
  [...new Set(edges.map(({ relation }) => visibleText(relation)))].join(', ');
