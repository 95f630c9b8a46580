import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../logger.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';
import { createOtlpExporter, type OtlpExporter } from './otlp-exporter.ts';
import type { OtlpOptions } from './otlp-options.ts';

interface OtlpContext {
  readonly otlp: OtlpOptions;
  readonly version: string;
  /** Unless `OTEL_SERVICE_NAME` names it. Default `ruvllm`. */
  readonly service?: string;
  readonly nodeName: string | undefined;
  readonly metrics: Pick<ServerMetrics, 'addCounter'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The exporter of a server; a metric counts the spans that it drops. */
export function openOtlp({
  otlp,
  version,
  service = 'ruvllm',
  nodeName,
  metrics,
  clock,
  logger,
}: OtlpContext): OtlpExporter {
  const resource = {
    'service.name': service,
    'service.version': version,
    ...(nodeName === undefined ? {} : { 'host.name': nodeName }),
    ...otlp.resource,
  };
  const report = (reason: string): void => logger.log('warn', 'telemetry', { reason });
  const exporter = createOtlpExporter({ options: otlp, scope: { version, resource }, clock, report });
  metrics.addCounter('ruvllm_otlp_spans_total', 'Spans by result: exported, or dropped.', () => ({
    exported: exporter.numExported,
    dropped: exporter.numDropped,
  }));
  return exporter;
}
