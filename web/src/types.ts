// The answers of the server, as far as the dashboard reads them. Their reference is /openapi.json.
import type { Json } from "./api";

export interface QueueRow {
    id: string;
    name: string;
    namespace: string;
    task: string;
    createdAt: string;
    partitions: number;
    messages: { total: number; pending: number; processing: number };
    pending: number;
    processing: number;
    completed: number;
    dlq: number;
    lagSeconds: number;
    leaseTime: number;
    retryLimit: number;
    maxSize: number;
    encryptionEnabled: boolean;
    groups: number;
    ingestedPerSecond: number;
    processedPerSecond: number;
    history?: number[];
}

export interface QueuePage {
    queues: QueueRow[];
    pagination: { limit: number; offset: number; total?: number };
}

export interface PartitionRow {
    id: string;
    name: string;
    lastActivity: string | null;
    oldestMessage: string | null;
    newestMessage: string | null;
    total: number;
    pending: number;
    processing: number;
    completed: number;
    dlq: number;
}

export interface QueueDetail {
    queue: { id: string; name: string; namespace: string; task: string; priority: number; createdAt: string; options: Record<string, Json> };
    totals: { total: number; pending: number; processing: number; completed: number; deadLetter: number };
    partitions: PartitionRow[];
    pagination: { total: number };
}

export interface GroupRow {
    name: string;
    queueName: string;
    members: number;
    partitionsWithLag: number;
    totalLag: number;
    maxTimeLag: number;
    state: string;
}

export interface ThroughputPoint {
    timestamp: string;
    ingestedPerSecond: number;
    processedPerSecond: number;
    popPerSecond: number;
    avgLagMs: number;
    maxLagMs: number;
    avgEventLoopLagMs: number;
    maxEventLoopLagMs: number;
    dbErrors: number;
    ackFailed: number;
    dlqCount: number;
    queenCpuUserPct: number;
    queenCpuSysPct: number;
    queenRssMb: number;
    dbPoolActive: number;
    dbPoolSize: number;
}

export interface Status {
    throughput: ThroughputPoint[];
    messages: { pending: number; processing: number };
    leases: { active: number; partitionsWithLeases: number };
    deadLetterQueue: { totalMessages: number; affectedPartitions: number; topErrors: { error: string; count: number }[] };
    workers: Record<string, Json>[];
}

export interface Overview {
    queues: number;
    partitions: number;
    messages: { total: number; pending: number; processing: number; completed: number; failed: number; deadLetter: number };
    lag: { time: { max: number; avg: number }; offset: { max: number } };
    throughput: { ingestedPerSecond: number; processedPerSecond: number };
    timestamp: string;
}

export interface QueueOpsPoint {
    bucket: string;
    queueName: string;
    pushPerSecond: number;
    popPerSecond: number;
    ackPerSecond: number;
    avgLagMs: number;
    maxLagMs: number;
    parkedCount: number;
    ackFailed: number;
}

export interface MessageRow {
    id: string;
    transactionId: string;
    partitionId: string;
    queue: string;
    partition: string;
    status: string;
    createdAt: string;
}

export interface MessageDetail extends MessageRow {
    payload: Json;
    traceId: string | null;
    producerSub: string | null;
    isEncrypted: boolean;
    leaseExpiresAt: string | null;
    errorMessage?: string | null;
    retryCount?: number;
}

export interface Attempt {
    attempt: number;
    consumerGroup: string;
    outcome: string;
    deliveredAt: string | null;
    at: string;
    error?: string;
}

export interface DeadLetter {
    id: string;
    dlqId: string;
    transactionId: string;
    partitionId: string;
    queue: string;
    partition: string;
    consumerGroup: string;
    errorMessage: string | null;
    retryCount: number;
    createdAt: string;
    failedAt: string;
    attempts: Attempt[];
    data?: Json;
}

export interface TimelineEvent {
    at: string;
    event: string;
    consumerGroup?: string;
    attempt?: number;
    worker?: string;
    error?: string;
    errorCode?: string;
    nextAttemptAt?: string;
    targetQueue?: string;
    times?: number;
}

export interface TimelineGroup {
    consumerGroup: string;
    status: string;
    attempt: number;
    maxAttempts: number;
    nextAttemptAt?: string | null;
    lastError?: string | null;
}

export interface TimelineMessage {
    id: string;
    transactionId: string;
    queue: string;
    partition: string;
    partitionId: string;
    status: string;
    nextAttemptAt?: string | null;
    consumerGroups: TimelineGroup[];
    events: TimelineEvent[];
}

export interface Timeline {
    correlationId?: string;
    status: string;
    attempt?: number;
    maxAttempts?: number;
    nextAttemptAt?: string | null;
    messages: TimelineMessage[];
}

export interface ScheduledRow {
    id: string;
    queue: string;
    partition: string;
    transactionId: string;
    scheduledAt: string;
    kind?: string;
    consumerGroup?: string | null;
    attempt?: number | null;
    correlationId?: string | null;
}

export interface Schedule {
    id: string;
    name: string;
    queue: string;
    partition: string;
    cron: string;
    timezone: string;
    missed: string;
    paused: boolean;
    nextRunAt: string | null;
    lastRunAt: string | null;
    lastMessageId: string | null;
    runs: number;
    payload: Json;
}

export interface Health {
    status: string;
    database: string;
    server?: string;
    platform?: string;
    version?: string;
    warnings?: string[];
}

/** A partition of a queue, as a consumer group has it. */
export interface PartitionOfGroup {
    partition: string;
    partitionId: string;
    cursor: number | null;
    totalConsumed: number;
    lag: number;
    lagSeconds: number;
    lastConsumedAt: string | null;
    leaseId: string | null;
    leaseExpiresAt: string | null;
}

export interface GroupPartitions {
    leases: number;
    partitions: PartitionOfGroup[];
    pagination: { limit: number; offset: number; total: number };
}
