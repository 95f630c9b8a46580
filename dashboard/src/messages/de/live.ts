import { formatCount, formatCountOf } from '../../format/numbers.ts';
import type { Messages } from '../en/index.ts';

export const live: Messages['live'] = {
  title: 'Live',
  subtitle: 'Laufende und wartende Anfragen, Durchsatz und Cache, jede Sekunde aktualisiert.',
  loading: 'Warten auf den Server',
  reconnecting: 'Neuer Verbindungsversuch alle 2 s.',
  reconnectingStale: 'Neuer Verbindungsversuch alle 2 s; gezeigt werden die zuletzt empfangenen Werte.',
  silence: (seconds) => `Seit ${seconds} s keine Nachricht vom Server.`,
  closing: 'Der Server fährt herunter: Laufende Anfragen werden beendet, neue abgelehnt.',
  requests: 'Anfragen',
  queued: (count) => `${formatCount(count)} in der Warteschlange`,
  hidden: (count) => `${formatCount(count)} von anderen Mandanten`,
  batchSize: 'Batchgröße',
  generatedRate: 'Erzeugte Tokens/s',
  promptRate: 'Prompt-Tokens/s',
  allModels: 'alle Modelle',
  throughput: 'Durchsatz',
  tokensPerSecond: 'Tokens/s',
  throughputChart: 'Erzeugte Tokens und Prompt-Tokens pro Sekunde',
  generated: 'erzeugt',
  prompt: 'Prompt',
  load: 'Last',
  batchAndQueue: 'Batch und Warteschlange',
  loadChart: 'Anfragen im Batch und in der Warteschlange',
  batch: 'Batch',
  queue: 'Warteschlange',
  noRequests: 'Keine laufenden Anfragen',
  requestsTable: 'Laufende und wartende Anfragen',
  columns: {
    request: 'Anfrage',
    tenant: 'Mandant',
    model: 'Modell',
    node: 'Knoten',
    state: 'Zustand',
    prompt: 'Prompt',
    cached: 'Im Cache',
    generated: 'Erzeugt',
    rate: 'Tokens/s',
    elapsed: 'Dauer',
  },
  states: { loading: 'lädt Modell', prompt: 'Prompt', generating: 'erzeugt' },
  filters: 'Filter',
  all: 'alle',
  noMatches: 'Keine laufenden Anfragen passen zu diesen Filtern',
  range: 'Zeitraum',
  since: 'seit ',
  ranges: { recent: '5 min', hour: '1 h' },
  memoryAndCache: 'Speicherbudget und Cache-Treffer',
  memoryChart: 'Belegter Anteil des Speicherbudgets und Treffer im Präfix-Cache in der letzten Minute',
  budgetUse: 'Speicherbudget',
  cacheHits: 'Cache-Treffer',
  answers: 'Antworten der letzten Minute',
  answersChart: 'Beantwortete und fehlgeschlagene Anfragen der letzten Minute, alle Modelle',
  answered: 'beantwortet',
  failed: 'fehlgeschlagen',
  encoderFollows: (size) =>
    `Der Satzkodierer des Speichers wird ${size === '' ? 'geladen' : `heruntergeladen (${size})`}. Bis dahin wird nur nach Wörtern gesucht.`,
  encoderUnavailable: (reason) =>
    `Der Satzkodierer des Speichers ist nicht verfügbar${reason === '' ? '' : `: ${reason}`}. Der nächste Start versucht es wieder.`,
  alerts: {
    queueLength: {
      title: 'Lange Warteschlange',
      detail: (count, limit) => `${count} Anfragen warten (Warnung ab ${limit}).`,
    },
    firstTokenWait: {
      title: 'Langsames erstes Token',
      detail: (time, limit) => `Eine Anfrage wartet seit ${time} auf ihr erstes Token (Warnung ab ${limit}).`,
    },
    memoryBudget: {
      title: 'Speicherbudget erschöpft',
      detail: (model, share, limit) =>
        `Laufende Anfragen belegen ${share} des Speicherbudgets von ${model} (Warnung ab ${limit}). Neue Anfragen warten.`,
    },
    errorShare: {
      title: 'Anfragen schlagen fehl',
      detail: (share, count, window, limit) =>
        `${share} von ${count} Anfragen der letzten ${window} schlugen fehl (Warnung ab ${limit}).`,
    },
    memoryDegraded: {
      title: 'Speicher eingeschränkt',
      detail:
        'Der Speicher ist nicht beschreibbar, hat Daten verloren oder enthält beschädigte Einträge. Der Grund steht im Protokoll; ruvllm memory check findet alle Schäden.',
    },
    keysDamaged: {
      title: 'API-Schlüssel abgelehnt',
      detail: (count: string) =>
        `${count} Datensätze von API-Schlüsseln sind beschädigt oder fehlen; ihre Schlüssel werden abgelehnt. Das Protokoll nennt die Dateien.`,
    },
    backupFailed: {
      title: 'Sicherung fehlgeschlagen',
      detail: 'Die letzte geplante Sicherung ist fehlgeschlagen. Der Grund steht im Protokoll.',
    },
    masterKeyDamaged: {
      title: 'Hauptschlüssel beschädigt',
      detail:
        'Die Datei des Hauptschlüssels war beschädigt und wurde beiseitegelegt. Damit verschlüsselte Daten sind erst wieder lesbar, wenn der Schlüssel zurückgelegt wird.',
    },
    spillUnavailable: {
      title: 'KV-Auslagerung nicht verfügbar',
      detail: 'KV-Seiten und Sitzungen werden nicht auf der Festplatte gespeichert. Der Grund steht im Protokoll.',
    },
    auditDropped: {
      title: 'Audit-Einträge verloren',
      detail: (count, window) =>
        `${count} Audit-Einträge der letzten ${window} wurden nicht geschrieben (Warnung ab 1).`,
    },
    spillFull: {
      title: 'Auslagerungsplatz voll',
      detail: (model, share, limit) =>
        `Ausgelagerte Seiten von ${model} belegen ${share} ihrer Grenze (Warnung ab ${limit}).`,
    },
    diskLow: {
      title: 'Platte fast voll',
      detail: (free, limit) => `Für die Daten des Servers sind ${free} frei (Warnung unter ${limit}).`,
    },
  },
  models: 'Modelle',
  noModels: 'Keine Modelle geladen',
  noModelsHint: 'Die nächste Anfrage lädt ihr Modell.',
  latency: 'Latenz',
  latencyInLast: (seconds) => `Latenz der letzten ${seconds} s`,
  samples: 'Messungen',
  firstToken: 'Zeit bis zum ersten Token',
  interToken: 'Zeit zwischen Tokens',
  pool: 'Seitenspeicher',
  inUse: (used, budget) => `${used} von ${budget} belegt`,
  of: ' von ',
  poolNote: (share, peak, sessions) => ` (${share}), höchstens ${peak}; ${sessions} durch Sitzungen belegt`,
  tiers: {
    float: 'Seiten in voller Genauigkeit',
    packed: 'Gepackte Seiten',
    adapters: 'Adapter',
    drafts: 'Frühere Antworten, für Entwürfe',
    slack: 'Ungenutzter Platz',
  },
  pages: (count) => formatCountOf(count, 'Seite', 'Seiten'),
  spilled: 'Auf Platte ausgelagert',
  spillLimit: (limit) => `von ${limit}`,
  shared: 'Mit anderen Knoten geteilt',
  sharedPages: (read, written) =>
    `${formatCountOf(read, 'Seite', 'Seiten')} gelesen, ${formatCountOf(written, 'Seite', 'Seiten')} geschrieben`,
  sharedFailures: (count, isSuspended) =>
    `${formatCountOf(count, 'Fehler', 'Fehler')}${isSuspended ? ', ausgesetzt' : ''}`,
  cacheNote: ({ lookups, hitShare, savedTokens, evictions }) =>
    `Präfix-Cache: ${formatCountOf(lookups, 'Suche', 'Suchen')}, ${hitShare} Treffer; ` +
    `${formatCountOf(savedTokens, 'Token', 'Tokens')} wiederverwendet; ${formatCountOf(evictions, 'Seite', 'Seiten')} verdrängt`,
  draftNote: ({ accepted, share }) =>
    `Spekulatives Dekodieren: ${formatCountOf(accepted, 'Token', 'Tokens')} richtig vorhergesagt, ${share} aller Vorhersagen`,
  prefixCache: 'Präfix-Cache',
  loadingPrefixes: 'Präfix-Cache wird geladen',
  noPrefixes: 'Der Präfix-Cache ist leer. Die nächste Anfrage füllt ihn.',
  prefixHint: (pageTokens) =>
    `Tokens von links nach rechts, ${pageTokens} pro Seite; kräftigere Farben bedeuten mehr Treffer. ` +
    'Eingabetaste oder Doppelklick vergrößert, Escape verkleinert.',
  prefixesIncomplete: 'Gezeigt werden nur die meistbenutzten Präfixe.',
  zoomOut: 'Verkleinern',
  prefixes: 'Präfixe im Cache',
  node: {
    tokens: 'Tokens',
    range: (count, start) => `${count}, ab ${start}`,
    hits: 'Treffer',
    lastUse: (hits, calls) =>
      `${formatCount(hits)}, ${calls === 0 ? 'zuletzt gerade eben' : `zuletzt vor ${formatCountOf(calls, 'Cache-Zugriff', 'Cache-Zugriffen')}`}`,
    size: 'Größe',
    pages: (size, full, packed) =>
      `${size}: ${formatCountOf(full, 'Seite', 'Seiten')} in voller Genauigkeit, ${formatCountOf(packed, 'gepackte Seite', 'gepackte Seiten')}`,
    tenant: 'Mandant',
    adapter: (name) => `, Adapter ${name}`,
    isSession: ', von einer Sitzung belegt',
    summary: (tokens, size, hits, branches) =>
      [
        formatCountOf(tokens, 'Token', 'Tokens'),
        size,
        formatCountOf(hits, 'Treffer', 'Treffer'),
        formatCountOf(branches, 'Zweig', 'Zweige'),
      ].join(', '),
  },
};
