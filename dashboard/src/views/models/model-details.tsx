import { api } from '../../app/session.ts';
import { Dialog } from '../../components/dialog.tsx';
import { JsonViewer } from '../../components/json-viewer.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.models.details;

/** The facts of `GET /props` about a loaded model that people ask for. */
interface ModelFacts {
  readonly architecture: string;
  readonly numParameters: number;
  readonly quantization: string;
  readonly contextLength: number;
  readonly maxContext: number;
  readonly vocabSize: number;
  readonly chatTemplate: string;
  readonly fileBytes: number;
  readonly memory: { readonly weightBytes: number; readonly kvBytes: number; readonly activationBytes: number };
  readonly kernels: string;
  readonly numThreads: number;
  readonly loadMs: number;
  readonly sampling: Readonly<Record<string, unknown>>;
}

/** The facts about a loaded model, and all it reports. */
export function ModelDetails({ id, onClose }: { id: string; onClose: () => void }) {
  const props = useResource((signal) => api.props(signal));
  const model = props.data.value?.models.find((entry) => entry.id === id);
  return (
    <Dialog title={visibleText(id)} isWide onClose={onClose}>
      {props.error.value !== null && <ErrorNotice error={props.error.value} />}
      {props.data.value === null && props.error.value === null && <Loading label={text.loading} />}
      {model !== undefined &&
        (model.info === null ? (
          <p class="soft">{text.notLoaded}</p>
        ) : (
          <div class="stack">
            <dl class="pairs">
              {factsOf(model.info as unknown as ModelFacts).map(([name, value]) => [
                <dt key={name}>{name}</dt>,
                <dd>{visibleText(value)}</dd>,
              ])}
            </dl>
            <details>
              <summary>{text.all}</summary>
              <JsonViewer value={model.info} openDepth={2} />
            </details>
          </div>
        ))}
    </Dialog>
  );
}

function factsOf(info: ModelFacts): readonly (readonly [name: string, value: string])[] {
  const { weightBytes, kvBytes, activationBytes } = info.memory;
  const sampling = Object.entries(info.sampling).filter(([, value]) => typeof value === 'number');
  return [
    [text.architecture, info.architecture],
    [text.parameters, formatCount(info.numParameters)],
    [text.quantization, info.quantization],
    [text.context, text.contextValue(info.maxContext, formatCount(info.contextLength))],
    [text.vocabulary, text.tokens(info.vocabSize)],
    [text.chatTemplate, info.chatTemplate],
    [text.file, formatBytes(info.fileBytes)],
    [text.memory, text.memoryValue(formatBytes(weightBytes), formatBytes(kvBytes), formatBytes(activationBytes))],
    [text.kernels, text.kernelsValue(info.kernels, info.numThreads)],
    [text.loadTime, formatDuration(info.loadMs)],
    ...(sampling.length === 0 ? [] : [[text.sampling, sampling.map(([name, value]) => `${name} ${String(value)}`).join(', ')] as const]), // prettier-ignore
  ];
}
