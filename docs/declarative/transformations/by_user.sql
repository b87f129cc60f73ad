CREATE MATERIALIZED VIEW by_user AS
SELECT user, count(*) AS orders, sum(amount) AS amount
FROM orders
WHERE amount IS NOT NULL
GROUP BY user
