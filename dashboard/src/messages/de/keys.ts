import type { Messages } from '../en/index.ts';

export const keys: Messages['keys'] = {
  title: 'Schlüssel',
  subtitle: 'Zugang zu diesem Server nach Mandant und Rechten.',
  create: 'Schlüssel anlegen',
  loading: 'Schlüssel werden geladen',
  empty: 'Keine API-Schlüssel',
  emptyHint:
    'Jeder auf diesem Rechner kann den Server benutzen. Sobald es einen Schlüssel gibt, braucht jede Anfrage einen.',
  columns: ['Name', 'Mandant', 'Rechte', 'Angelegt', 'Zustand'],
  active: 'aktiv',
  activeYours: 'aktiv (Ihrer)',
  revoked: 'widerrufen',
  revoke: 'Widerrufen',
  revokeKey: (name) => `${name} widerrufen`,
  revokedKey: (name) => `${name} wurde widerrufen.`,
  confirmRevoke: 'Diesen Schlüssel widerrufen?',
  revokeHint: (name) =>
    `Der Server lehnt alle weiteren Anfragen mit ${name} ab. Das lässt sich nicht rückgängig machen.`,
  revokeOwnHint: 'Sie sind mit diesem Schlüssel angemeldet und werden abgemeldet.',
  scopes: {
    'read-only': {
      title: 'Ansehen',
      description: 'Modelle, Messwerte und Daten des Mandanten ansehen; keine Änderungen.',
    },
    inference: {
      title: 'Benutzen',
      description: 'Texte erzeugen, Rückmeldung geben, den Speicher des Mandanten ergänzen.',
    },
    download: {
      title: 'Herunterladen',
      description: 'Modelldateien herunterladen, um sie in einem Tab auszuführen.',
    },
    admin: { title: 'Verwalten', description: 'Voller Zugriff: Schlüssel, Modelle und alle Mandanten.' },
  },
  newKey: 'Neuer API-Schlüssel',
  copyNow: 'Kopieren Sie diesen Schlüssel jetzt. Er wird nur einmal gezeigt: Der Server behält nur seinen Hash.',
  copyKey: 'Schlüssel kopieren',
  signedIn: 'Sie sind mit diesem Schlüssel angemeldet. Ab jetzt braucht jede Anfrage einen Schlüssel.',
  done: 'Fertig',
  createTitle: 'API-Schlüssel anlegen',
  openServer:
    'Dieser Server ist offen. Sobald es einen Schlüssel gibt, braucht jede Anfrage einen, auch die dieser Seite.',
  name: 'Name',
  nameHint: 'Wer den Schlüssel benutzt: eine Person, ein Programm oder ein Rechner.',
  tenant: 'Mandant',
  tenantHint: 'Wem Sitzungen, Speicher und Anfragen gehören. Vorgabe: der Name des Schlüssels.',
  openTenantHint: (tenant) =>
    `Die bisherigen Daten gehören dem Mandanten ${tenant}. Ein Schlüssel eines anderen Mandanten sieht sie nicht.`,
  scopesLegend: 'Rechte',
  cancel: 'Abbrechen',
  createSubmit: 'Anlegen',
};
