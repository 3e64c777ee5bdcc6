"""``spark.read.format("sluice")``: CSV objects in Swift as a Spark table, filtered by the object store.

from sluice_spark import register

spark = SparkSession.builder.config("spark.sql.python.filterPushdown.enabled", "true").getOrCreate()
register(spark)
meters = spark.read.format("sluice").options(url=url, token=token).load("metering/2026")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_spark.options import SluiceReadError
from sluice_spark.source import SluiceDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SluiceDataSource", "SluiceReadError", "register"]


def register(spark: SparkSession) -> None:
    """Register the format ``sluice`` with ``spark``, and enable filter pushdown to Python data sources."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(SluiceDataSource)
