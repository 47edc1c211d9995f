// The answers of the platform, as far as its pages read them. Their reference is the platform's /openapi.json.
import type { Json } from "../api";

export interface Tenant {
    tenant: string;
    kind: string;
    state: string;
    database: string | null;
    url: string | null;
    error: string | null;
    createdAt: string;
    schemaVersion: number | null;
}

export interface Pools {
    max: number;
    open: number;
    held: number;
    idle: number;
    waiting: number;
    down: number;
    known: number;
    hitRate: number;
    hits: number;
    misses: number;
    evictions: number;
    timeouts: number;
    failedOpens: number;
    tenants: { tenant: string; kind: string; state: string; refs: number; connections: number; waiting: number; idleMs: number; downMs: number; error: string | null }[];
}

export interface ReadModel {
    model: string;
    mode: string;
    source: string;
    staleMs: number | null;
    changedAt: string | null;
    view: { built: boolean; refreshedAt: string | null; stale: boolean; refreshing: boolean; durationMs: number | null; rows: number | null; failures: number; error: string | null };
    live: { ready: boolean; filling: boolean; checkedRows: number; differingRows: number };
}

export interface Attribute {
    name: string;
    label: string;
    table: string;
    type: string;
    withinDays: boolean;
    operators: string[];
}

export interface Operator { name: string; label: string; value: "one" | "two" | "list" | "none" | "days" }
export interface Catalogue { attributes: Attribute[]; operators: Operator[] }

export type Filter =
    | { all: true }
    | { and: Filter[] }
    | { or: Filter[] }
    | { not: Filter }
    | { attribute: string; operator: string; value?: Json; withinDays?: number };

export interface Counted { count: number; path: string; staleMs: number; cached: boolean; tookMs: number }
export interface Customer { id: number; customer: string; firstName: string | null; lastName: string | null; email: string | null; city: string | null }
export interface Subscription { queue: string; everySeconds?: number; error?: string | null }
export interface Segment { id: string; name: string; filter: Filter; createdAt?: string; updatedAt?: string; watched?: boolean; subscription?: Subscription | null; lastCount?: { at: string; count: number } | null }
export interface Campaign {
    id: string; name: string; segment: string; queue: string; channel: string; createdAt: string; runs: number; everySeconds: number | null;
    when: { kind: string; at: string | null; cron: string | null; timezone: string | null };
}
export interface CampaignRun {
    run: string | null; trigger: string; path: string | null; recipients: number; sent: number; skipped: Record<string, number>; createdAt: string; finishedAt: string | null;
    status: string | null; attempt: number | null; maxAttempts: number | null; nextAttemptAt: string | null; lastError: string | null; statusError?: string;
}
export interface Explained { matches?: boolean; verdict?: boolean; because?: string; filters?: { at: string; label: string; verdict: boolean; value: Json }[] }
